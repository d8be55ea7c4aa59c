"""Settings of the planner for one statement, where its own choice was measured to be several times slower."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import connection, transaction

# Only bitmaps are left: the planner would rather read every row and compare arrays.
BY_BITMAP = {"enable_seqscan": "off", "enable_indexscan": "off"}
# Chunks of some documents are fetched one by one from a cache that mostly holds them; the default presumes a spinning disk and reads all.
BY_DOCUMENT = {"random_page_cost": "1.1"}


@contextmanager
def planner(settings: Mapping[str, str]) -> Iterator[None]:
    """Ends with the transaction that it opens; inside a caller's transaction the settings found are put back."""
    nested = connection.in_atomic_block
    with transaction.atomic():
        before = {name: connection_setting(name) for name in settings} if nested else {}
        _set(settings)
        yield
        if nested:
            _set(before)


def connection_setting(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting(%s, true), '')", [name])
        return cursor.fetchone()[0]


def _set(settings: Mapping[str, str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS wanted(name, value)",
            [list(settings), list(settings.values())],
        )
