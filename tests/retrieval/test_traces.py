"""How long traces are kept."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from ingestion import housekeeping
from retrieval.models import RetrievalTrace
from retrieval.requests import SearchRequest
from retrieval.search import search
from retrieval.traces import collect_traces

pytestmark = pytest.mark.django_db


@pytest.fixture
def aged(organization, other_organization):
    """Traces of two organizations, 29 and 31 days old."""
    for owner in (organization, other_organization):
        for days in (29, 31):
            trace = RetrievalTrace.objects.create(organization=owner, query=f"{days} days", mode="keyword")
            RetrievalTrace.objects.filter(id=trace.id).update(created_at=timezone.now() - timedelta(days=days))


def kept() -> list[str]:
    return sorted(RetrievalTrace.objects.values_list("query", flat=True))


def test_housekeeping_removes_what_is_older_than_the_setting(aged):
    housekeeping.housekeep()
    assert kept() == ["29 days", "29 days"]


def test_nothing_goes_where_they_are_kept_for_ever(aged, settings):
    settings.ENV = settings.ENV.model_copy(update={"trace_days": 0})
    assert collect_traces() == 0
    assert len(kept()) == 4


def test_a_long_history_goes_piece_by_piece(aged, settings):
    settings.ENV = settings.ENV.model_copy(update={"trace_days": 1})
    assert [collect_traces(limit=1), collect_traces(limit=1), collect_traces(limit=1)] == [2, 2, 0]


def setting(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s)", [name])
        return cursor.fetchone()[0]


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_a_trace_outside_of_a_transaction_is_the_same(actor, library) -> None:
    library.add("The boiler stands in the cellar.")
    request = SearchRequest(query="boiler", neighbours=0)
    waits = setting("synchronous_commit")
    alone = RetrievalTrace.objects.get(id=search(actor, request).trace_id)
    with transaction.atomic():
        within = RetrievalTrace.objects.get(id=search(actor, request).trace_id)
    assert alone.hits
    for field in RetrievalTrace._meta.concrete_fields:
        if field.name not in ("id", "created_at", "timings_ms"):
            assert getattr(alone, field.attname) == getattr(within, field.attname), field.name
    assert setting("synchronous_commit") == waits, "for the trace alone"
