"""What a knowledge base answers, beside what it must answer."""

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.benchmarks.soak.ground import Figures, Ground
from tests.benchmarks.soak.texts import Text, marks, squeezed

Key = tuple[str, str]  # id of the source ("" for pushed texts), name of the document
_DRIFT = """
    SELECT (SELECT count(*) FROM kb_chunk c WHERE c.knowledge_base_id = k.id AND NOT EXISTS
              (SELECT FROM embedding_384 v WHERE v.kb = k.id AND v.space = k.space_id AND v.chunk = c.id)),
           (SELECT count(*) FROM kb_chunk c WHERE c.knowledge_base_id = k.id AND NOT EXISTS
              (SELECT FROM lexical w WHERE w.kb = k.id AND w.chunk = c.id)),
           (SELECT count(*) FROM embedding_384 v WHERE v.kb = k.id AND NOT EXISTS (SELECT FROM kb_chunk c WHERE c.id = v.chunk)),
           (SELECT count(*) FROM lexical w WHERE w.kb = k.id AND NOT EXISTS (SELECT FROM kb_chunk c WHERE c.id = w.chunk)),
           (SELECT count(*) FROM kb_document d WHERE d.knowledge_base_id = k.id
               AND d.chunk_count <> (SELECT count(*) FROM kb_chunk c WHERE c.document_id = d.id)),
           (SELECT count(*) FROM (SELECT c.document_id FROM kb_chunk c WHERE c.knowledge_base_id = k.id
              GROUP BY c.document_id HAVING count(DISTINCT c.ordinal) <> count(*) OR max(c.ordinal) <> count(*) - 1) gaps)
      FROM kb_knowledgebase k WHERE k.id = %s
"""


def compare(
    ground: Ground,
    figures: Figures,
    knowledge_base: str,
    expected: Mapping[Key, Text],
    *,
    chance: random.Random,
    modes: tuple[str, ...] = ("keyword",),
    vectors: bool = True,
) -> None:
    """Count every difference between the documents that answer and those that must. Nothing may be under way.

    Without `vectors`, those of the present space may still be missing: the model changed and not everything ran since.
    """
    standing: dict[Key, list[dict[str, Any]]] = {}
    direct = _direct_source(ground, knowledge_base)
    for document in ground.pages(f"/knowledge-bases/{knowledge_base}/documents"):
        key = ("" if document["source_id"] == direct else document["source_id"], document["name"])
        standing.setdefault(key, []).append(document)
    for key, documents in standing.items():
        answering = [document for document in documents if document["chunks"]]
        if key not in expected:
            figures.count(
                "undead", f"{key} of {knowledge_base} answers with {sum(row['chunks'] for row in answering)} chunks", bool(answering)
            )
        elif len(answering) > 1:
            figures.count("doubled", f"{len(answering)} documents {key} answer in {knowledge_base}", len(answering) - 1)
    for key, text in expected.items():
        _compare_document(ground, figures, knowledge_base, key, text, standing.get(key, []))
    check_tables(ground, figures, knowledge_base, vectors=vectors)
    check_search(ground, figures, knowledge_base, expected, chance=chance, modes=modes)


def _direct_source(ground: Ground, knowledge_base: str) -> str:
    found = ground.rows("SELECT id FROM kb_source WHERE knowledge_base_id = %s AND kind = 'direct'", [knowledge_base])
    return str(found[0][0]) if found else ""


def _compare_document(ground: Ground, figures: Figures, knowledge_base: str, key: Key, text: Text, documents: list[dict[str, Any]]) -> None:
    if not documents:
        figures.count("lost", f"{key} is not among the documents of {knowledge_base}")
        return
    document = documents[0]
    if document["first_ingested_at"] and not document["chunks"]:
        figures.count(
            "wrongly_deleted", f"{key} of {knowledge_base} answered once and has no chunk now: {document['state']}, {document['error']!r}"
        )
        return
    joined = "".join(chunk["text"] for chunk in chunks_of(ground, document["id"]))
    if squeezed(joined) == squeezed(text.markdown):
        return
    wanted, found = Counter(marks(text.markdown)), Counter(marks(joined))
    where = f"{key} of {knowledge_base} (document {document['id']}, {document['state']}, error {document['error']!r})"
    missing, surplus = wanted - found, found - wanted
    twice = {mark for mark in surplus if wanted[mark]}
    figures.count("lost", f"{where} lacks {sum(missing.values())} of {sum(wanted.values())} sentences", bool(missing))
    figures.count("doubled", f"{where} has {sorted(twice)[:5]} twice", bool(twice))
    figures.count("undead", f"{where} still says {sorted(set(surplus) - twice)[:5]}", bool(set(surplus) - twice))
    figures.count("lost", f"{where} has other text than was sent", not (missing or surplus))


def chunks_of(ground: Ground, document: str) -> list[dict[str, Any]]:
    chunks: list[dict[str, Any]] = []
    cursor = None
    while True:
        options = {"params": {"limit": 100} | ({"cursor": cursor} if cursor else {})}
        page = ground.client.call("GET", f"/documents/{document}", **options)["chunk_page"]
        chunks += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return chunks


def check_tables(ground: Ground, figures: Figures, knowledge_base: str, *, vectors: bool = True) -> None:
    """Every chunk has one vector and one row of words (their keys are unique), and neither stands without its chunk."""
    found = ground.rows(_DRIFT, [knowledge_base])
    if not found:
        return
    no_vector, no_words, orphan_vectors, orphan_words, miscounted, misnumbered = found[0]
    no_vector = no_vector if vectors else 0
    figures.count("lost", f"chunks of {knowledge_base} without a vector: {no_vector}, without words: {no_words}", no_vector + no_words)
    figures.count(
        "undead", f"vectors ({orphan_vectors}) or words ({orphan_words}) of {knowledge_base} without chunk", orphan_vectors + orphan_words
    )
    figures.count(
        "doubled", f"documents of {knowledge_base} with a wrong count ({miscounted}) or order ({misnumbered})", miscounted + misnumbered
    )


def check_search(
    ground: Ground,
    figures: Figures,
    knowledge_base: str,
    expected: Mapping[Key, Text],
    *,
    chance: random.Random,
    modes: tuple[str, ...] = ("keyword",),
    looks: int = 6,
) -> None:
    """A word that stands in one sentence is found in exactly one passage, and no passage of anything else comes up."""
    alive = {mark for text in expected.values() for mark in marks(text.markdown)}
    for key in chance.sample(sorted(expected), min(looks, len(expected))):
        mark = chance.choice(marks(expected[key].markdown))
        for mode in modes:
            texts = ground.client.texts(knowledge_base, mark, mode=mode, neighbours=0, max_results=10, min_score=0)
            hits = [text for text in texts if mark in marks(text)]
            dead = [text for text in texts if set(marks(text)) - alive]
            where = f"{mode} search in {knowledge_base} for {mark} of {key}"
            figures.count("lost", f"{where} finds nothing", mode == "keyword" and not hits)
            figures.count("doubled", f"{where} finds it {len(hits)} times", len(hits) > 1)
            figures.count("undead", f"{where} answers {dead[:1]}", len(dead))


def check_gone(ground: Ground, figures: Figures, knowledge_base: str, gone: list[Text], *, chance: random.Random, looks: int = 6) -> None:
    """Words of deleted texts find nothing."""
    for text in chance.sample(gone, min(looks, len(gone))):
        mark = chance.choice(marks(text.markdown))
        texts = ground.client.texts(knowledge_base, mark, mode="keyword", neighbours=0, min_score=0)
        found = [hit for hit in texts if mark in marks(hit)]
        figures.count("undead", f"{mark} of a deleted text is found in {knowledge_base}", bool(found))
