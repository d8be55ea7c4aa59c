"""How long traces are kept."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ingestion import housekeeping
from retrieval.models import RetrievalTrace
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
