"""What `search.py` searches: chunks with clustered vectors and Zipf text, in knowledge bases that share one leaf of one space.

Vectors: a mixture of clusters in 32 latent dimensions, mapped into 384 (real embeddings have few intrinsic dimensions; isotropic noise
in 384 has no near neighbours to find). Text: pseudo-words by Zipf's law, analysed like any text.
"""

import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
from django.db import connection, connections, transaction

from kb import versioning
from kb.access import system_actor
from kb.models import Document, EmbeddingModel, EmbeddingSpace, KnowledgeBase, Organization, Source
from kb.stores.provision import build_indexes, provision_space
from kb.stores.statistics import fold_statistics, refresh_impacts
from kb.stores.tables import LEAVES, space_name
from kb.stores.vectors import VectorRow, add_vectors
from kb.stores.words import WordRow, add_words
from kb.words.analysis import document_terms, written_words
from kb.words.hashing import hash_counts, hash_written

MODEL = "bench"
DIMENSION = 384
LATENT = 32
VOCABULARY = 60_000
CHUNKS_A_DOCUMENT = 25
# Shares of the chunks: each is a knowledge base, the rest is another.
SHARES = {"0.1%": 0.001, "1%": 0.01, "10%": 0.1}
CHUNK_COLUMNS = (
    'id, organization_id, knowledge_base_id, document_id, ordinal, start, "end", text, text_hash, heading_path, language, tokens'
)


@dataclass
class Corpus:
    organization: Organization
    space: EmbeddingSpace
    knowledge_bases: dict[str, KnowledgeBase] = field(default_factory=dict)
    documents: list[UUID] = field(default_factory=list)
    chosen: dict[str, list[UUID]] = field(default_factory=dict)
    chunk_ids: list[int] = field(default_factory=list)
    owners: list[UUID] = field(default_factory=list)
    chunk_documents: list[UUID] = field(default_factory=list)
    vectors: list[np.ndarray] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: {"chunks": 0.0, "vectors": 0.0, "words": 0.0})


class Generator:
    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._centres = self._random.normal(size=(200, LATENT))
        self._map = self._random.normal(size=(LATENT, DIMENSION)) / np.sqrt(LATENT)
        frequencies = 1.0 / np.arange(1, VOCABULARY + 1)
        self._cumulated = np.cumsum(frequencies / frequencies.sum())
        self.words = [self._word(i) for i in range(VOCABULARY)]

    def draw_from(self, seed: int) -> None:
        """What comes now is the same whether a corpus was drawn before or not: a question must not be one of its chunks."""
        self._random = np.random.default_rng(seed)

    @staticmethod
    def _word(number: int) -> str:
        syllables = ["ba", "ce", "di", "fo", "gu", "ha", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu", "wa", "ye", "zi", "xo", "qu"]
        text = ""
        number += 400
        while number:
            number, rest = divmod(number, len(syllables))
            text += syllables[rest]
        return text

    def vectors(self, count: int) -> np.ndarray:
        latent = self._centres[self._random.integers(len(self._centres), size=count)] + 0.6 * self._random.normal(size=(count, LATENT))
        vectors = latent @ self._map + 0.05 * self._random.normal(size=(count, DIMENSION))
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def text(self) -> str:
        drawn = np.searchsorted(self._cumulated, self._random.random(int(self._random.integers(120, 260))))
        return " ".join(self.words[min(i, VOCABULARY - 1)] for i in drawn)

    def question(self) -> str:
        """Three to eight words, flatter than text: people ask for what is not in every chunk, with some that is."""
        count = int(self._random.integers(3, 9))
        ranks = np.exp(self._random.uniform(np.log(20), np.log(30_000), count)).astype(int)
        return " ".join(self.words[rank] for rank in ranks)


def open_corpus(generator: Generator, *, chunks: int, kept: Path | None) -> Corpus:
    """A new one, or the one that an earlier run left beside its database."""
    if kept is not None and kept.is_file():
        with kept.open("rb") as file:
            corpus = pickle.load(file)
        if len(corpus.chunk_ids) != chunks:
            raise SystemExit(f"{kept} holds {len(corpus.chunk_ids)} chunks. Ask for as many, or name another folder.")
        return corpus
    corpus = make_corpus(generator, chunks=chunks)
    if kept is not None:
        with kept.open("wb") as file:
            pickle.dump(corpus, file)
    return corpus


def make_corpus(generator: Generator, *, chunks: int) -> Corpus:
    model = EmbeddingModel.objects.create(name=MODEL, provider="local", model="random", dimension=DIMENSION, max_input_tokens=256)
    space = EmbeddingSpace.objects.create(embedding_model=model, dimension=DIMENSION, fingerprint="bench")
    provision_space(space)
    corpus = Corpus(Organization.objects.create(name="Bench"), space)
    counts = {name: max(int(chunks * share), 10) for name, share in SHARES.items()}
    counts["rest"] = chunks - sum(counts.values())
    # Of the rest first: the small ones then lie where a grown installation has them, behind everything else.
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        _fill(corpus, generator, name, count)
    _mark_documents(corpus)
    _settle(corpus)
    return corpus


def _fill(corpus: Corpus, generator: Generator, name: str, count: int) -> None:
    knowledge_base = KnowledgeBase.objects.create(id=_id_in_first_leaf(corpus.space), organization=corpus.organization, name=f"new {name}")
    document = {"name": name, "embedding_model": MODEL}
    versioning.publish(knowledge_base, document=document, expected=None, actor=system_actor(corpus.organization))
    source = Source.objects.create(organization=corpus.organization, knowledge_base=knowledge_base, kind="direct", name="direct")
    corpus.knowledge_bases[name] = knowledge_base
    for first in range(0, count, CHUNKS_A_DOCUMENT):
        size = min(CHUNKS_A_DOCUMENT, count - first)
        with transaction.atomic():
            _publish(corpus, generator, knowledge_base, source, size)


def _publish(corpus: Corpus, generator: Generator, knowledge_base: KnowledgeBase, source: Source, size: int) -> None:
    """One document, as a publication writes it: chunks, vectors and words in one transaction."""
    texts, vectors = [generator.text() for _ in range(size)], generator.vectors(size)
    document_id = uuid4()
    Document.objects.create(
        id=document_id, organization=corpus.organization, knowledge_base=knowledge_base, source=source,
        key=str(document_id), key_hash=document_id.bytes, title="Document", chunk_count=size,
    )  # fmt: skip
    with _timed(corpus, "chunks"):
        ids = _insert_chunks(corpus, knowledge_base, document_id, texts)
    words = []
    for chunk, text in zip(ids, texts, strict=True):
        counts, length = document_terms(text, None)
        words.append(WordRow(chunk, hash_counts(counts), length, hash_written(written_words(text, None))))
    with _timed(corpus, "vectors"):
        add_vectors(
            organization=corpus.organization.pk, space=corpus.space, knowledge_base=knowledge_base.pk,
            rows=[VectorRow(chunk, vector) for chunk, vector in zip(ids, vectors, strict=True)],
        )  # fmt: skip
    with _timed(corpus, "words"):
        add_words(organization=corpus.organization.pk, knowledge_base=knowledge_base.pk, rows=words)
    corpus.documents.append(document_id)
    corpus.chunk_ids += ids
    corpus.owners += [knowledge_base.pk] * size
    corpus.chunk_documents += [document_id] * size
    corpus.vectors.append(vectors)


def _insert_chunks(corpus: Corpus, knowledge_base: KnowledgeBase, document: UUID, texts: list[str]) -> list[int]:
    """COPY is not for tables under row-level security; one statement with arrays is nearly as quick."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('kb_chunk_id_seq') FROM generate_series(1, %s)", [len(texts)])
        ids = [row[0] for row in cursor.fetchall()]
        cursor.execute(
            f"INSERT INTO kb_chunk ({CHUNK_COLUMNS})"
            " SELECT chunk, %s, %s, %s, n - 1, (n - 1) * 2000, (n - 1) * 2000 + length(words), words, '', '{}', '', 200"
            " FROM unnest(%s::bigint[], %s::text[]) WITH ORDINALITY AS given (chunk, words, n)",
            [corpus.organization.pk, knowledge_base.pk, document, ids, texts],
        )
    return ids


def _id_in_first_leaf(space: EmbeddingSpace) -> UUID:
    """One leaf for all: a small knowledge base beside a large one is the hard case."""
    with connection.cursor() as cursor:
        while True:
            candidate = uuid4()
            cursor.execute(
                "SELECT satisfies_hash_partition(to_regclass(%s), %s, 0, %s)", [space_name(DIMENSION, space.pk), LEAVES, candidate]
            )
            if cursor.fetchone()[0]:
                return candidate


def _settle(corpus: Corpus) -> None:
    """What the default queue does after a run: statistics folded, impacts refreshed, indexes built."""
    started = time.perf_counter()
    for knowledge_base in corpus.knowledge_bases.values():
        fold_statistics(knowledge_base.pk)
        while refresh_impacts(knowledge_base.pk):
            pass
    corpus.seconds["settle"] = time.perf_counter() - started
    started = time.perf_counter()
    build_indexes(corpus.space)
    corpus.seconds["index"] = time.perf_counter() - started
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    connections["owner"].close()


class _timed:
    def __init__(self, corpus: Corpus, part: str) -> None:
        self._corpus, self._part = corpus, part

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_) -> None:
        self._corpus.seconds[self._part] += time.perf_counter() - self._started


def _mark_documents(corpus: Corpus) -> None:
    """`shares` in the metadata: every n-th document of all, so that a filter cuts across what was written together."""
    shares: dict[UUID, list[str]] = {}
    for name, share in SHARES.items():
        wanted = max(round(len(corpus.documents) * share), 1)
        step = len(corpus.documents) / wanted
        corpus.chosen[name] = [corpus.documents[int(i * step)] for i in range(wanted)]
        for document in corpus.chosen[name]:
            shares.setdefault(document, []).append(name)
    for document, names in shares.items():
        Document.objects.filter(pk=document).update(metadata={"shares": names})


def iter_questions(generator: Generator, count: int) -> Iterator[tuple[str, np.ndarray]]:
    for vector in generator.vectors(count):
        yield generator.question(), vector


def remove_documents(corpus: Corpus, count: int) -> float:
    """Milliseconds a chunk for removing the first documents, a transaction each, triggers included."""
    started, removed = time.perf_counter(), 0
    for document in corpus.documents[:count]:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("DELETE FROM kb_chunk WHERE document_id = %s", [document])
            removed += cursor.rowcount
    return 1000 * (time.perf_counter() - started) / max(removed, 1)
