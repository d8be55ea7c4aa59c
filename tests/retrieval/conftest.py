"""Knowledge bases with chunks that answer, written through the stores as publication does, without a worker."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.utils import timezone

from kb import blobs, services
from kb.embedding import provider_of
from kb.models import Chunk, Document, KnowledgeBase, Source
from kb.providers import Role, embed
from kb.stores.vectors import VectorRow, add_vectors
from kb.stores.words import WordRow, add_words
from kb.words.analysis import document_terms, written_words
from kb.words.hashing import hash_counts, hash_written


@dataclass
class Library:
    """One knowledge base and a way to put documents into it."""

    knowledge_base: KnowledgeBase
    source: Source
    documents: list[Document] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.knowledge_base.id)

    def add(self, *texts: str, title: str = "", chunk_values: Sequence[dict] | None = None, space: Any = None, **values: Any) -> Document:
        """A document whose chunks are `texts`, an empty line between two of them."""
        number = len(self.documents)
        knowledge_base = self.knowledge_base
        space = space or knowledge_base.space
        markdown = values.pop("markdown", "\n\n".join(texts))
        language = values.pop("language", "en")
        document = Document.objects.create(
            organization_id=knowledge_base.organization_id, knowledge_base=knowledge_base, source=self.source,
            key=f"{number}.md", key_hash=number.to_bytes(16, "big"), title=title or f"Document {number}",
            language=language, chunk_count=len(texts), space=space, last_ingested_at=timezone.now(),
            markdown=blobs.store_bytes(knowledge_base.organization_id, markdown.encode()), **values,
        )  # fmt: skip
        self.documents.append(document)
        if not texts:
            return document
        rows, position = [], 0
        for ordinal, text in enumerate(texts):
            own = {"start": position, "end": position + len(text)} | (chunk_values[ordinal] if chunk_values else {})
            digest = hashlib.sha256(text.encode()).digest()
            same = {"organization_id": knowledge_base.organization_id, "knowledge_base": knowledge_base, "document": document}
            rows.append(Chunk(**same, ordinal=ordinal, text=text, text_hash=digest, tokens=1, language=language, **own))
            position = own["end"] + 2
        chunks = Chunk.objects.bulk_create(rows)
        spec, provider = provider_of(space.embedding_model, organization_id=knowledge_base.organization_id)
        vectors = embed(provider, spec, list(texts), Role.DOCUMENT).vectors
        scope = {"organization": knowledge_base.organization_id, "knowledge_base": knowledge_base.id}
        add_vectors(**scope, space=space, rows=[VectorRow(chunk.pk, vector) for chunk, vector in zip(chunks, vectors, strict=True)])
        words = []
        for chunk, text in zip(chunks, texts, strict=True):
            counts, length = document_terms(text, language)
            words.append(WordRow(chunk.pk, hash_counts(counts), length, hash_written(written_words(text, language))))
        add_words(**scope, rows=words)
        return document


@pytest.fixture
def make_library(actor, hashing_model) -> Callable[..., Library]:
    def make(name: str, by: Any = None, document: dict | None = None, **retrieval: Any) -> Library:
        document = {
            **(document or {}),
            "name": name,
            "visibility": "organization",
            "retrieval": {"neighbours": 0, "min_score": 0.0, **retrieval},
            "sources": [{"name": "files", "type": "upload"}],
        }
        knowledge_base = services.create_knowledge_base(by or actor, document=document)
        return Library(knowledge_base, Source.objects.get(knowledge_base=knowledge_base, name="files"))

    return make


@pytest.fixture
def library(make_library) -> Library:
    return make_library("Handbooks")
