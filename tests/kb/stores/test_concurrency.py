"""Publications, removals and folding at once: no deadlock, no lost count."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction

from config.tenancy import carried
from kb.models import Chunk, Document
from kb.stores.drift import drift
from kb.stores.statistics import fold_statistics, refresh_impacts
from kb.stores.vectors import VectorRow, add_vectors
from kb.stores.words import WordRow, add_words

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])


def publish(shelf, number: int) -> None:
    chooser = random.Random(number)
    with transaction.atomic():
        document = Document.objects.create(
            organization_id=shelf.organization, knowledge_base=shelf.knowledge_base, source=shelf.source,
            key=str(number), key_hash=number.to_bytes(16, "big"), chunk_count=5,
        )  # fmt: skip
        chunks = Chunk.objects.bulk_create(
            Chunk(
                organization_id=shelf.organization, knowledge_base=shelf.knowledge_base, document=document,
                ordinal=i, start=i, end=i + 1, text="x", text_hash=b"", tokens=1,
            )
            for i in range(5)
        )  # fmt: skip
        place = {"organization": shelf.organization, "knowledge_base": shelf.id}
        add_vectors(**place, space=shelf.space, rows=[VectorRow(chunk.pk, [1.0] * 256) for chunk in chunks])
        words = [
            WordRow(chunk.pk, {chooser.randint(1, 30): chooser.randint(1, 3) for _ in range(chooser.randint(1, 20))}, 20)
            for chunk in chunks
        ]
        add_words(**place, rows=words)


def test_counts_stay_true_under_writers_removers_and_folders(shelf, monkeypatch):
    monkeypatch.setattr("kb.stores.statistics.PENDING_AT_MOST", 4)

    def work(number: int) -> None:
        try:
            publish(shelf, number)
            if number % 3 == 0:
                Chunk.objects.filter(document__key=str(number)).delete()
            if number % 4 == 0:
                fold_statistics(shelf.id)
            if number % 5 == 0:
                refresh_impacts(shelf.id, 10)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(carried(work), range(48)))
    fold_statistics(shelf.id)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM lexical_delta")
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT term, df FROM lexical_term WHERE df <> 0 ORDER BY term")
        counted = cursor.fetchall()
        cursor.execute("SELECT term, count(*) FROM lexical, unnest(terms) term GROUP BY term ORDER BY term")
        assert counted == cursor.fetchall()
        cursor.execute("SELECT chunks FROM lexical_total")
        assert cursor.fetchone() == (Chunk.objects.count(),) == (160,)
    assert drift(shelf.knowledge_base).is_clean
