"""Settings of the planner for one statement, where its own choice was measured to be several times slower."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from django.db import connection, transaction

# What no other statement reads is not taken back.
_OF_AN_INDEX = "hnsw."
# Only bitmaps are left: the planner would rather read every row and compare arrays.
BY_BITMAP = {"enable_seqscan": "off", "enable_indexscan": "off"}
# Chunks of some documents are fetched one by one from a cache that mostly holds them; the default presumes a spinning disk and reads all.
BY_DOCUMENT = {"random_page_cost": "1.1"}
# An array that a sub-query makes has ten entries by the planner's guess: it would rather read every row and compare it with each entry.
BY_ARRAY = {"enable_seqscan": "off"}


def fetch_all(statement: str, parameters: Sequence[Any] | Mapping[str, Any], settings: Mapping[str, str]) -> list[tuple]:
    """The rows of a statement that is planned under some settings, which end with it: all in one message, without a round trip more.

    The parameters are bound by psycopg before it is sent (Django's default), so a message may hold several statements.
    """
    before = "".join(f"SET LOCAL {name} = {value}; " for name, value in settings.items())
    after = "".join(f"; SET LOCAL {name} TO DEFAULT" for name in settings if not name.startswith(_OF_AN_INDEX))
    within = transaction.atomic() if settings and not connection.in_atomic_block else nullcontext()
    with within, connection.cursor() as cursor:
        cursor.execute(before + statement + after, parameters)
        for _ in settings:
            cursor.nextset()
        return cursor.fetchall()
