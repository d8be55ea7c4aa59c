"""Rows for the stores' tests: two organizations, knowledge bases, and one space whose partition outlives the tests' transactions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
import pytest
from django.db import connection, connections
from django.utils import timezone

from kb.models import Chunk, Document, EmbeddingModel, EmbeddingSpace, KnowledgeBase, Organization, Source
from kb.stores.provision import drop_space, provision_space
from kb.stores.tables import space_name
from kb.stores.vectors import VectorRow, add_vectors
from kb.stores.words import WordRow, add_words

DIMENSION = 256
# Far from what a sequence hands out: the partition stays while the rows of each test are rolled back.
SPACE = 900_000_001


@pytest.fixture(scope="session")
def partition(django_db_setup, django_db_blocker) -> int:
    """Partitions are made by the owner outside of any test's transaction, else the application's connection could not see them."""
    with django_db_blocker.unblock():
        provision_space(EmbeddingSpace(pk=SPACE, dimension=DIMENSION, provisioned_at=timezone.now()))
        connections["owner"].close()
    return SPACE


@pytest.fixture
def space(partition, db) -> EmbeddingSpace:
    model = EmbeddingModel.objects.create(name="vectors", provider="hashing", model="h", dimension=DIMENSION, max_input_tokens=100)
    return EmbeddingSpace.objects.create(
        pk=partition, embedding_model=model, dimension=DIMENSION, fingerprint="f", provisioned_at=timezone.now()
    )


@dataclass
class Shelf:
    """One knowledge base and what was put into it."""

    knowledge_base: KnowledgeBase
    source: Source
    space: EmbeddingSpace
    documents: list[Document] = field(default_factory=list)

    @property
    def organization(self) -> UUID:
        return self.knowledge_base.organization_id

    @property
    def id(self) -> UUID:
        return self.knowledge_base.pk

    def add_document(self, count: int) -> list[int]:
        number = len(self.documents)
        document = Document.objects.create(
            organization_id=self.organization, knowledge_base=self.knowledge_base, source=self.source,
            key=f"{number}", key_hash=number.to_bytes(16, "big"), chunk_count=count,
        )  # fmt: skip
        self.documents.append(document)
        made = Chunk.objects.bulk_create(
            Chunk(
                organization_id=self.organization, knowledge_base=self.knowledge_base, document=document,
                ordinal=i, start=i, end=i + 1, text="x", text_hash=b"", tokens=1,
            )
            for i in range(count)
        )  # fmt: skip
        return [chunk.pk for chunk in made]

    def add_vectors(self, chunks: Sequence[int], vectors: Iterable[np.ndarray]) -> None:
        rows = [VectorRow(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
        add_vectors(organization=self.organization, space=self.space, knowledge_base=self.id, rows=rows)

    def add_words(self, chunks: Sequence[int], counts: Iterable[dict[int, int]]) -> None:
        rows = [WordRow(chunk, held, sum(held.values())) for chunk, held in zip(chunks, counts, strict=True)]
        add_words(organization=self.organization, knowledge_base=self.id, rows=rows)


@pytest.fixture
def make_shelf(space) -> Callable[..., Shelf]:
    def make(name: str, organization: Organization | None = None) -> Shelf:
        owner = organization or Organization.objects.create(name=f"Organization of {name}")
        knowledge_base = KnowledgeBase.objects.create(organization=owner, name=name, space=space)
        source = Source.objects.create(organization=owner, knowledge_base=knowledge_base, kind=Source.Kind.DIRECT, name="direct")
        return Shelf(knowledge_base, source, space)

    return make


@pytest.fixture
def shelf(make_shelf) -> Shelf:
    return make_shelf("Handbook")


@pytest.fixture
def fresh(db):
    """A space without a partition; whatever the test makes of it is dropped."""
    model = EmbeddingModel.objects.create(name="fresh", provider="hashing", model="h", dimension=256, max_input_tokens=100)
    space = EmbeddingSpace.objects.create(embedding_model=model, dimension=256, fingerprint="f")
    yield space
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM embedding_256 WHERE space = %s", [space.pk])
        cursor.execute("DELETE FROM embedding_use WHERE space = %s", [space.pk])
    space.knowledge_bases.update(space=None)
    drop_space(space)


def value(query, *parameters, using="default"):
    with connections[using].cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchone()[0]


def leaves(space):
    return value("SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(%s)", space_name(256, space.pk))
