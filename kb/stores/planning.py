"""Settings of the planner for one statement, where its own choice was measured to be several times slower."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import connection, transaction

# Only bitmaps are left: the planner would rather read every row and compare arrays.
BY_BITMAP = {"enable_seqscan": "off", "enable_indexscan": "off"}
# Chunks of some documents are fetched one by one from a cache that mostly holds them; the default presumes a spinning disk and reads all.
BY_DOCUMENT = {"random_page_cost": "1.1"}
# An array that a sub-query makes has ten entries by the planner's guess: it would rather read every row and compare it with each entry.
BY_ARRAY = {"enable_seqscan": "off"}


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
    before = _set(settings)
    yield
    _set(before)


def _set(settings: Mapping[str, str]) -> dict[str, str]:
    """What stood there before, in the same round trip."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH found AS MATERIALIZED ("
            "SELECT name, value, current_setting(name, true) AS before FROM unnest(%s::text[], %s::text[]) AS wanted(name, value)"
            ") SELECT name, before, set_config(name, value, true) FROM found",
            [list(settings), list(settings.values())],
        )
        return {name: before for name, before, _ in cursor.fetchall() if before}
