"""Sources keep their identity; copies get their own."""

from typing import Any
from uuid import UUID

import pytest

from config.errors import InvalidInput
from kb.schemas import KnowledgeBaseDocument, assign_source_ids, dump, duplicate, load, without_source_ids


def knowledge_base(*sources: dict[str, Any]) -> KnowledgeBaseDocument:
    return load({"name": "kb", "sources": list(sources)})


def files(name: str, **values: Any) -> dict[str, Any]:
    return {"name": name, "type": "upload", **values}


def site(name: str, **values: Any) -> dict[str, Any]:
    return {"name": name, "web": {"start_url": "https://a.example/"}, **values}


def ids(document: KnowledgeBaseDocument) -> dict[str, str | None]:
    return {source.name: source.id for source in document.sources}


@pytest.fixture
def first() -> KnowledgeBaseDocument:
    return assign_source_ids(knowledge_base(files("a"), files("b"), site("c")), None)


def test_new_sources_get_ids_that_sort_by_time_and_differ(first: KnowledgeBaseDocument) -> None:
    made = [source.id or "" for source in first.sources]
    assert all(str(UUID(identity)) == identity and UUID(identity).version == 7 for identity in made)
    assert len(set(made)) == 3


def test_the_given_document_stays_as_it_is() -> None:
    document = knowledge_base(files("a"))
    assign_source_ids(document, None)
    assert document.sources[0].id is None


def test_what_was_published_can_be_published_again(first: KnowledgeBaseDocument) -> None:
    assert assign_source_ids(load(dump(first)), first) == first


def test_matching_by_name_whatever_the_order_and_capitals(first: KnowledgeBaseDocument) -> None:
    again = assign_source_ids(knowledge_base(site("C"), files("new"), files("b"), files("A")), first)
    assert ids(again)["A"] == ids(first)["a"]
    assert ids(again)["b"] == ids(first)["b"]
    assert ids(again)["C"] == ids(first)["c"]
    assert ids(again)["new"] not in ids(first).values()


def test_an_id_wins_over_a_name(first: KnowledgeBaseDocument) -> None:
    known = ids(first)
    swapped = assign_source_ids(knowledge_base(files("b", id=known["a"]), files("a", id=known["b"])), first)
    assert ids(swapped) == {"b": known["a"], "a": known["b"]}
    taken = assign_source_ids(knowledge_base(files("renamed", id=known["a"]), files("a")), first)
    assert ids(taken)["renamed"] == known["a"]
    assert ids(taken)["a"] not in known.values()


def test_an_id_with_dashes_is_the_same_id(first: KnowledgeBaseDocument) -> None:
    identity = ids(first)["a"] or ""
    dashed = "-".join((identity[:8], identity[8:12], identity[12:16], identity[16:20], identity[20:]))
    assert ids(assign_source_ids(knowledge_base(files("z", id=dashed)), first)) == {"z": identity}


@pytest.mark.parametrize("known", [True, False])
def test_an_unknown_id_is_refused(first: KnowledgeBaseDocument, known: bool) -> None:
    stranger = knowledge_base(files("a", id="0190b7e5a1f07c3e9d5b0a1c2d3e4f50"))
    with pytest.raises(InvalidInput, match=r"sources\[a\]\.id") as caught:
        assign_source_ids(stranger, first if known else None)
    assert caught.value.extra["errors"][0]["path"] == "sources[a].id"


def test_another_type_keeps_an_id_that_is_named(first: KnowledgeBaseDocument) -> None:
    assert ids(assign_source_ids(knowledge_base(site("a", id=ids(first)["a"])), first)) == {"a": ids(first)["a"]}
    replaced = assign_source_ids(knowledge_base(site("a")), first)  # no id: another source that takes the name
    assert ids(replaced)["a"] not in ids(first).values()


def test_a_duplicate_shares_nothing_but_settings(first: KnowledgeBaseDocument) -> None:
    copy = duplicate(first, "  copy ")
    assert copy.name == "copy"
    assert not set(ids(copy).values()) & set(ids(first).values())
    assert dump(without_source_ids(copy))["sources"] == dump(without_source_ids(first))["sources"]


def test_a_duplicate_of_what_could_not_be_published_today() -> None:
    stored = load({"name": "kb", "store": {"type": "qdrant"}}, strict=False)
    assert duplicate(stored, "copy").store.type == "qdrant"


def test_a_duplicate_needs_a_name(first: KnowledgeBaseDocument) -> None:
    with pytest.raises(InvalidInput, match="name"):
        duplicate(first, "  ")
