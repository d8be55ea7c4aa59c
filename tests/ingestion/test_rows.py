"""Many rows in one statement come out as Django would have saved them."""

import pytest
from django.db import DataError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ingestion.models import RunItem
from ingestion.rows import update_rows
from ingestion.services.pushes import ingest_text

pytestmark = pytest.mark.django_db


@pytest.fixture
def items(knowledge_base) -> list[RunItem]:
    runs = [ingest_text(knowledge_base, text=f"Text {number}.", document_name=f"name {number}") for number in range(3)]
    return list(RunItem.objects.filter(run__in=runs).order_by("id"))


def test_every_kind_of_value_is_stored_as_given(items):
    now = timezone.now()
    given = [
        {"title": "Ü ' \\ %s", "extracted": {"a": [1, None, "x"]}, "text_hashes": [b"\x00\xff", b"'"], "changed_at": now, "chunks": 3},
        {"title": "", "extracted": None, "text_hashes": None, "changed_at": now, "chunks": 0},
        {"title": "b", "extracted": {}, "text_hashes": [], "changed_at": now, "chunks": 70_000},
    ]
    with CaptureQueriesContext(
        connection,
    ) as queries:
        update_rows(RunItem, [(item.id, values) for item, values in zip(items, given, strict=True)])
    assert len(queries) == 1
    for item, values in zip(items, given, strict=True):
        item.refresh_from_db()
        hashes = item.text_hashes if item.text_hashes is None else [bytes(value) for value in item.text_hashes]
        assert {**{name: getattr(item, name) for name in values}, "text_hashes": hashes} == values


def test_columns_of_nulls_and_related_rows(items):
    blob = items[0].blob
    update_rows(RunItem, [(item.id, {"lease_token": None, "not_before": None, "markdown": blob}) for item in items])
    assert set(RunItem.objects.filter(id__in=[item.id for item in items]).values_list("markdown_id", "lease_token")) == {(blob.id, None)}


def test_what_a_column_refuses_is_an_error_and_not_cut(items):
    with pytest.raises(DataError), transaction.atomic():
        update_rows(RunItem, [(items[0].id, {"title": "x" * 301})])


def test_nothing_to_do(items):
    with CaptureQueriesContext(connection) as queries:
        update_rows(RunItem, [])
    assert len(queries) == 0
