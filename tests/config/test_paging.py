import base64
import json
import random
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.apps.registry import Apps
from django.db import connections, models
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from config.errors import InvalidInput
from config.paging import CursorPages, take_page

ROW_ID = "01a22ee7-726c-77f1-8bf2-8e02086d4a4a"


class Row(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    created_at = models.DateTimeField()
    rank = models.IntegerField()

    class Meta:
        app_label = "paging"
        # Of its own, so that no test about migrations sees this table.
        apps = Apps()

    def __str__(self):
        return str(self.id)


@pytest.fixture
def rows(django_db_blocker):
    """A database in memory: the condition is plain SQL, which any engine reads alike."""
    with django_db_blocker.unblock():
        connections.databases["paging"] = connections.databases["default"] | {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": ":memory:",
            "OPTIONS": {},
        }
        with connections["paging"].schema_editor() as editor:
            editor.create_model(Row)
        start, dice = datetime(2026, 1, 1, tzinfo=UTC), random.Random(7)
        made = [Row(created_at=start + timedelta(seconds=dice.randrange(8)), rank=dice.randrange(4)) for _ in range(57)]
        Row.objects.using("paging").bulk_create(made)
        yield Row.objects.using("paging")
        connections["paging"].close()
        del connections["paging"]
        del connections.databases["paging"]


def walk(queryset, *, limit, **arguments):
    cursor, found = None, []
    for _ in range(100):
        page = take_page(queryset.all(), cursor=cursor, limit=limit, **arguments)
        assert len(page.items) == limit or page.next_cursor is None
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise AssertionError("it never ends")


@pytest.mark.parametrize(
    "ordering", [("-created_at", "-id"), ("created_at", "id"), ("rank", "-created_at", "id"), ("-rank", "id"), ("id",)]
)
@pytest.mark.parametrize("limit", [1, 10, 57, 100])
def test_every_row_comes_once_in_order(rows, ordering, limit):
    assert walk(rows, limit=limit, ordering=ordering) == list(rows.order_by(*ordering))


def test_rows_that_come_or_go_shift_nothing(rows):
    first = take_page(rows.all(), cursor=None, limit=10)
    rows.create(created_at=datetime(2027, 1, 1, tzinfo=UTC), rank=1)
    expected = list(rows.exclude(pk__in=[row.pk for row in first.items]).order_by("-created_at", "-id")[1:11])
    rows.filter(pk=first.items[-1].pk).delete()
    assert take_page(rows.all(), cursor=first.next_cursor, limit=10).items == expected


def coded(*values):
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "é",
        "AAAA",
        "=",
        "a" * 5000,
        coded(),
        coded("-created_at,-id"),
        coded("created_at,id", "2026-01-01T00:00:00+00:00", ROW_ID),
        coded("-created_at,-id", "2026-01-01T00:00:00", ROW_ID),
        coded("-created_at,-id", "2026-01-01T00:00:00+00:00", "no uuid"),
        coded("-created_at,-id", "soon", ROW_ID),
        coded("-created_at,-id", 3, ROW_ID),
        coded("-created_at,-id", ["2026"], True),
        coded("-created_at,-id", "2026-01-01T00:00:00+00:00\0", ROW_ID),
    ],
)
def test_a_cursor_that_was_not_given_out_is_refused(rows, cursor):
    with pytest.raises(InvalidInput, match="cursor"):
        list(take_page(rows.all(), cursor=cursor, limit=10).items)


def paged(rows, query):
    pages = CursorPages()
    items = pages.paginate_queryset(rows.all(), Request(APIRequestFactory().get(f"/?{query}")))
    return pages.get_paginated_response([str(row) for row in items]).data


def test_the_answer_of_a_view(rows):
    first = paged(rows, "")
    assert len(first["items"]) == 20
    second = paged(rows, f"limit=200&cursor={first['next_cursor']}")
    assert len(second["items"]) == 37
    assert second["next_cursor"] is None
    assert len(set(first["items"] + second["items"])) == 57


@pytest.mark.parametrize("limit", ["0", "-1", "201", "x", "1.5", "１０", "9" * 30])
def test_limits_out_of_range_are_refused(rows, limit):
    with pytest.raises(InvalidInput, match="1 to 200"):
        paged(rows, f"limit={limit}")


def test_the_schema_says_both():
    pages = CursorPages()
    assert pages.get_paginated_response_schema({"type": "array"})["required"] == ["items", "next_cursor"]
    assert [parameter["name"] for parameter in pages.get_schema_operation_parameters(None)] == ["cursor", "limit"]
