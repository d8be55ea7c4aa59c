from django.db import connection

from kb.models import Chunk
from kb.stores.drift import Drift, drift, remove_orphans


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_a_healthy_knowledge_base_has_none(shelf):
    chunks = shelf.add_document(3)
    shelf.add_vectors(chunks, [[1.0] * 256] * 3)
    shelf.add_words(chunks, [{1: 1}] * 3)
    assert drift(shelf.knowledge_base) == Drift(0, 0, 0, 0)
    assert drift(shelf.knowledge_base).is_clean
    Chunk.objects.filter(pk=chunks[0]).delete()
    assert drift(shelf.knowledge_base).is_clean


def test_counts_what_is_missing_and_what_is_left_over(shelf, make_shelf):
    other = make_shelf("Untouched", shelf.knowledge_base.organization)
    for each in (shelf, other):
        chunks = each.add_document(4)
        each.add_vectors(chunks, [[1.0] * 256] * 4)
        each.add_words(chunks, [{1: 1}] * 4)
    mine = shelf.documents[0].chunks.order_by("pk").values_list("pk", flat=True)
    run(f"DELETE FROM embedding_256 WHERE chunk = {mine[0]}")
    run(f"DELETE FROM lexical WHERE chunk IN ({mine[0]}, {mine[1]})")
    run(f"UPDATE embedding_256 SET chunk = -1 WHERE chunk = {mine[2]}")
    run(f"UPDATE lexical SET chunk = -1 WHERE chunk = {mine[3]}")
    assert drift(shelf.knowledge_base) == Drift(missing_vectors=2, missing_words=3, orphan_vectors=1, orphan_words=1)
    assert remove_orphans(shelf.knowledge_base) == 2
    assert drift(shelf.knowledge_base) == Drift(missing_vectors=2, missing_words=3, orphan_vectors=0, orphan_words=0)
    assert drift(other.knowledge_base).is_clean
