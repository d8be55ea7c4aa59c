"""Which space a knowledge base answers from, and the lock between publications and the moment when that changes.

Not the row: whoever locks it `FOR SHARE` passes by one who waits to update it, and many publications would make a switch wait for ever.
An advisory lock lets nobody pass. It ends with the transaction.
"""

from uuid import UUID

from django.db import connection

_NAME = "publications:{}"


def hold_space(knowledge_base_id: UUID) -> int | None:
    """The space that answers, and goes on doing so until the transaction ends. Taken before any other lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))", [_NAME.format(knowledge_base_id)])
        # Another statement, which sees what was committed while this one waited.
        cursor.execute("SELECT space_id FROM kb_knowledgebase WHERE id = %s", [knowledge_base_id])
        row = cursor.fetchone()
        return row[0] if row else None


def wait_for_publications(knowledge_base_id: UUID) -> None:
    """No publication is under way, and none begins until the transaction ends. For who has locked the knowledge base's row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [_NAME.format(knowledge_base_id)])
