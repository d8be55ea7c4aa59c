from django.db import connection

from kb.models import Chunk
from kb.stores.drift import drift, remove_orphans
from kb.stores.statistics import fold_statistics
from kb.stores.words import WordRow, add_words, search_words
from kb.words.analysis import document_terms, written_words
from kb.words.hashing import hash_counts, hash_written
from kb.words.query import parse_query


def rows(query: str):
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def add_texts(shelf, *texts: str) -> list[int]:
    chunks = shelf.add_document(len(texts))
    rows = []
    for chunk, text in zip(chunks, texts, strict=True):
        counts, length = document_terms(text, "en")
        rows.append(WordRow(chunk, hash_counts(counts), length, hash_written(written_words(text, "en"))))
    add_words(organization=shelf.organization, knowledge_base=shelf.id, rows=rows)
    return chunks


def begun(shelf, text: str, **more) -> list[int]:
    query = parse_query(text, ["en"])
    given = {"organization": shelf.organization, "knowledge_bases": [shelf.id]} | more
    return [chunk for chunk, _, _ in search_words(query=query, limit=10, **given).rows]


def test_a_beginning_stands_for_the_words_that_begin_so(shelf, make_shelf):
    chunks = add_texts(shelf, "Connections are pooled", "The organizational unit", "ERR_CONN_RESET at night", "Nothing of that kind")
    assert set(begun(shelf, "conn*")) == {chunks[0], chunks[2]}
    assert begun(shelf, "organizat*") == [chunks[1]]
    assert begun(shelf, "ERR_CONN_R*")[0] == chunks[2]
    assert begun(shelf, "organizatx*") == begun(shelf, "%nn*") == []
    other = make_shelf("Foreign")
    assert begun(shelf, "conn*", organization=other.organization) == []
    assert all(0 < share <= 1 for *_, share in search_words(
        organization=shelf.organization, knowledge_bases=[shelf.id], query=parse_query("conn* org*", ["en"]), limit=9,
    ).rows)  # fmt: skip


def test_all_words_of_a_beginning_weigh_as_one(shelf):
    chunks = add_texts(shelf, *["connection lost"] * 6, "connubial lost")
    found = search_words(organization=shelf.organization, knowledge_bases=[shelf.id], query=parse_query("conn*", ["en"]), limit=9)
    assert {chunk for chunk, _, _ in found.rows} == set(chunks)
    assert len({round(score, 5) for _, score, _ in found.rows}) == 1


def test_a_compound_finds_its_parts(shelf):
    """In languages that write them as one word, and only where both parts are words of the knowledge base."""
    chunks = shelf.add_document(3)
    written = ("Die Dichte der Bevölkerung steigt", "Wohin die Reise geht", "Bevölkerungsdichte in Zahlen")
    rows = []
    for chunk, text in zip(chunks, written, strict=True):
        counts, length = document_terms(text, "de")
        rows.append(WordRow(chunk, hash_counts(counts), length, hash_written(written_words(text, "de"))))
    add_words(organization=shelf.organization, knowledge_base=shelf.id, rows=rows)

    def found(text: str, language: str) -> list[int]:
        query = parse_query(text, [language])
        return [row[0] for row in search_words(organization=shelf.organization, knowledge_bases=[shelf.id], query=query, limit=9).rows]

    assert found("Bevölkerungsdichte", "de") == [chunks[2], chunks[0]]
    assert found("Reisedichte", "de") == [chunks[0], chunks[1]]
    assert found("Reiseverbot", "de") == []
    assert found("Bevölkerungsdichte", "en") == [chunks[2]]


def test_a_word_goes_with_its_last_chunk_and_with_its_knowledge_base(shelf):
    first = add_texts(shelf, "connection lost", "a lost cause")
    fold_statistics(shelf.id)
    Chunk.objects.filter(pk=first[0]).delete()
    fold_statistics(shelf.id)
    assert rows("SELECT word FROM lexical_word ORDER BY word") == [("cause",), ("lost",)]
    assert begun(shelf, "conn*") == []
    Chunk.objects.all().delete()
    shelf.knowledge_base.delete()
    assert rows("SELECT count(*) FROM lexical_word") == [(0,)]


def test_a_word_that_stayed_behind_is_found_and_removed(shelf):
    add_texts(shelf, "connection lost")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO lexical_word SELECT organization, kb, 'left', 77 FROM lexical_word LIMIT 1")
    assert drift(shelf.knowledge_base).orphan_words == 1
    assert remove_orphans(shelf.knowledge_base) == 1
    assert rows("SELECT word FROM lexical_word ORDER BY word") == [("connection",), ("lost",)]
