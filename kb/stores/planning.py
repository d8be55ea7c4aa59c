"""Settings of the planner for one statement, where its own choice was measured to be several times slower."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from django.db import connection, transaction

# Only bitmaps are left: the planner would rather read every row and compare arrays.
BY_BITMAP = {"enable_seqscan": "off", "enable_indexscan": "off"}
# Chunks of some documents are fetched one by one from a cache that mostly holds them; the default presumes a spinning disk and reads all.
BY_DOCUMENT = {"random_page_cost": "1.1"}


@contextmanager
def planner(settings: Mapping[str, str]) -> Iterator[None]:
    """Ends with the transaction that it opens; inside a caller's transaction the settings found are put back.

    pgvector's own are unknown to a connection that has not used it yet: those have nothing to be put back to, and every search sets them.
    """
    if not connection.in_atomic_block:
        with transaction.atomic():
            _set(settings)
            yield
        return
    before = _read(settings)
    _set(settings)
    yield
    _set(before)


def _read(names: Iterable[str]) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, current_setting(name, true) FROM unnest(%s::text[]) name", [list(names)])
        return {name: value for name, value in cursor.fetchall() if value}


def _set(settings: Mapping[str, str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS wanted(name, value)",
            [list(settings), list(settings.values())],
        )
