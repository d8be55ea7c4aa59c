import pytest
from django.utils import timezone
from pydantic import TypeAdapter

from config.errors import InvalidInput
from kb.models import Document
from retrieval.filters import Filter, compile_filter
from retrieval.metadata import MetadataTypes, merge_types
from retrieval.requests import SearchRequest
from retrieval.search import search


def parse(data):
    return TypeAdapter(Filter).validate_python(data)


@pytest.fixture
def shelf(library):
    new = {"year": 2020, "tags": ["a", "b"], "name": "Alpha One", "draft": False, "due": "2026-03-01"}
    library.add("boiler", title="new", metadata=new)
    library.add(
        "boiler",
        title="old",
        metadata={"year": 1990, "tags": ["b"], "name": "Beta", "draft": True, "5": "five", "due": "2026-03-01T13:30:00+01:00"},
        language="de",
    )
    library.add("boiler", title="text", metadata={"year": "2020", "none": None, "due": "soon"}, url="https://example.org/x")
    library.add("boiler", title="bare")
    return library


def titles(condition) -> set[str]:
    return set(Document.objects.filter(compile_filter(parse(condition))).values_list("title", flat=True))


ALL = {"new", "old", "text", "bare"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"type": "eq", "key": "year", "value": 2020}, {"new"}),
        ({"type": "eq", "key": "year", "value": 2020.0}, {"new"}),
        ({"type": "eq", "key": "year", "value": "2020"}, {"text"}),
        ({"type": "eq", "key": "draft", "value": False}, {"new"}),
        ({"type": "eq", "key": "5", "value": "five"}, {"old"}),
        ({"type": "ne", "key": "year", "value": 2020}, {"old", "text", "bare"}),
        ({"type": "gt", "key": "year", "value": 1990}, {"new"}),
        ({"type": "gte", "key": "year", "value": 1990}, {"new", "old"}),
        ({"type": "lt", "key": "year", "value": 2020}, {"old"}),
        ({"type": "lte", "key": "due", "value": "2026-03-31"}, {"new", "old"}),
        ({"type": "in", "key": "year", "value": [1990, "2020"]}, {"old", "text"}),
        ({"type": "in", "key": "year", "value": []}, set()),
        ({"type": "nin", "key": "year", "value": [1990, 2020]}, {"text", "bare"}),
        ({"type": "contains", "key": "tags", "value": "a"}, {"new"}),
        ({"type": "contains", "key": "name", "value": "alpha"}, {"new"}),
        ({"type": "contains", "key": "name", "value": "%"}, set()),
        ({"type": "exists", "key": "year", "value": True}, {"new", "old", "text"}),
        ({"type": "exists", "key": "year", "value": False}, {"bare"}),
        ({"type": "exists", "key": "none", "value": True}, set()),
        ({"type": "eq", "key": "language", "value": "de"}, {"old"}),
        ({"type": "eq", "key": "title", "value": "bare"}, {"bare"}),
        ({"type": "exists", "key": "metadata.title", "value": True}, set()),
        ({"type": "contains", "key": "url", "value": "EXAMPLE.org"}, {"text"}),
        ({"type": "exists", "key": "url", "value": False}, ALL - {"text"}),
        ({"type": "gt", "key": "created_at", "value": "2020-01-01"}, ALL),
        ({"type": "lt", "key": "ingested_at", "value": "2020-01-01T00:00:00Z"}, set()),
        # A day is the whole day, and text that is no date is none.
        ({"type": "eq", "key": "due", "value": "2026-03-01"}, {"new", "old"}),
        ({"type": "lte", "key": "due", "value": "2026-03-01"}, {"new", "old"}),
        ({"type": "gt", "key": "due", "value": "2026-02-28T23:00:00+00:00"}, {"new", "old"}),
        ({"type": "gt", "key": "due", "value": "2026-03-01"}, set()),
        ({"type": "gte", "key": "due", "value": "2026-03-01T12:00:00Z"}, {"old"}),
        ({"type": "ne", "key": "due", "value": "2026-03-01"}, {"text", "bare"}),
        ({"type": "in", "key": "tags", "value": ["a", "z"]}, {"new"}),
        ({"type": "eq", "key": "tags", "value": "b"}, {"new", "old"}),
        ({"type": "nin", "key": "tags", "value": ["a"]}, {"old", "text", "bare"}),
        ({"type": "lte", "key": "created_at", "value": timezone.now().date().isoformat()}, ALL),
        ({"type": "eq", "key": "created_at", "value": timezone.now().date().isoformat()}, ALL),
        ({"type": "not", "filter": {"type": "gt", "key": "year", "value": 1}}, {"text", "bare"}),
        (
            {"type": "and", "filters": [{"type": "exists", "key": "year", "value": True}, {"type": "eq", "key": "draft", "value": True}]},
            {"old"},
        ),
        (
            {"type": "or", "filters": [{"type": "eq", "key": "title", "value": "bare"}, {"type": "eq", "key": "draft", "value": True}]},
            {"old", "bare"},
        ),
    ],
)
def test_conditions(shelf, condition, expected) -> None:
    assert titles(condition) == expected


DECLARED = {"year": "number", "due": "date", "tags": "list", "draft": "boolean", "name": "text"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        # As the type says, however it was written.
        ({"type": "eq", "key": "year", "value": 2020}, {"new", "text"}),
        ({"type": "gte", "key": "year", "value": "1990.0"}, {"new", "old", "text"}),
        ({"type": "in", "key": "year", "value": [1990, 5]}, {"old"}),
        ({"type": "eq", "key": "draft", "value": "true"}, {"old"}),
        ({"type": "eq", "key": "draft", "value": False}, {"new"}),
        ({"type": "contains", "key": "tags", "value": "a"}, {"new"}),
        ({"type": "in", "key": "tags", "value": ["a", "b"]}, {"new", "old"}),
        ({"type": "contains", "key": "name", "value": "ALPHA"}, {"new"}),
        ({"type": "gt", "key": "name", "value": "B"}, {"old"}),
        ({"type": "lt", "key": "due", "value": "2026-03-02"}, {"new", "old"}),
        ({"type": "gt", "key": "due", "value": "2026-03-01T12:00:00Z"}, {"old"}),
        ({"type": "ne", "key": "due", "value": "2026-03-01"}, {"text", "bare"}),
        ({"type": "exists", "key": "due", "value": True}, {"new", "old", "text"}),
    ],
)
def test_declared_types(shelf, condition, expected) -> None:
    found = compile_filter(parse(condition), types=merge_types([DECLARED]))
    assert set(Document.objects.filter(found).values_list("title", flat=True)) == expected


@pytest.mark.parametrize(
    ("condition", "path", "said"),
    [
        ({"type": "eq", "key": "yaer", "value": 1}, "filters.key", "Known: .*due, .*year"),
        ({"type": "eq", "key": "metadata.title", "value": "x"}, "filters.key", "no key"),
        ({"type": "eq", "key": "year", "value": "soon"}, "filters.value", "must be a number for year"),
        ({"type": "eq", "key": "year", "value": True}, "filters.value", "a number"),
        ({"type": "contains", "key": "year", "value": 20}, "filters.type", "cannot be asked of a number"),
        ({"type": "gt", "key": "due", "value": 2020}, "filters.value", "a date"),
        ({"type": "gt", "key": "due", "value": "2026-02-30"}, "filters.value", "a date"),
        ({"type": "gt", "key": "tags", "value": "a"}, "filters.type", "of a list"),
        ({"type": "eq", "key": "draft", "value": "perhaps"}, "filters.value", "true or false"),
    ],
)
def test_what_a_declaration_refuses(condition, path, said) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        compile_filter(parse(condition), types=merge_types([DECLARED]))
    assert caught.value.extra["errors"][0]["path"] == path


def test_declarations_of_several_knowledge_bases() -> None:
    assert merge_types([{"year": "number"}, {"due": "date"}]) == MetadataTypes({"tags": "list", "year": "number", "due": "date"}, True)
    assert merge_types([{"year": "number"}, {"year": "text"}]).by_key["year"] == ""
    assert merge_types([{"year": "number"}, {}]).knows("anything")
    assert merge_types([{"tags": "text"}]).by_key["tags"] == "text"
    assert merge_types([]).knows("anything")


@pytest.mark.parametrize(
    "held", ["now", "infinity", "2026-13-45", "1e999999999", "0x10", "٣", "1_000", "NaN", "-", "", {"a": 1}, [1], None, "9" * 400]
)
def test_whatever_a_document_holds_is_no_error(library, held) -> None:
    library.add("boiler", title="odd", metadata={"held": held})
    for kind in ("number", "date"):
        value = 5 if kind == "number" else "2026-01-01"
        for operator in ("eq", "gt", "lte"):
            condition = compile_filter(parse({"type": operator, "key": "held", "value": value}), types=merge_types([{"held": kind}]))
            assert not Document.objects.filter(condition).exists()


def test_a_knowledge_base_declares_its_metadata(actor, make_library) -> None:
    library = make_library("Declared", document={"metadata": {"year": "number"}})
    library.add("boiler in the cellar", metadata={"year": "2020"})
    library.add("boiler in the roof", metadata={"year": 1990, "encoding": "utf-8"})
    request = {"query": "boiler", "filters": {"type": "gt", "key": "year", "value": 2000}}
    assert [hit.text for hit in search(actor, SearchRequest.model_validate(request)).hits] == ["boiler in the cellar"]
    request["filters"]["key"] = "years"
    with pytest.raises(InvalidInput, match=r"no key of these knowledge bases\. Known: .*year"):
        search(actor, SearchRequest.model_validate(request))


def test_ids(shelf) -> None:
    wanted = shelf.documents[1]
    assert titles({"type": "eq", "key": "document_id", "value": str(wanted.id)}) == {"old"}
    assert titles({"type": "in", "key": "source_id", "value": [str(shelf.source.id)]}) == ALL


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
def test_a_filter_is_part_of_the_search(actor, library, mode) -> None:
    for number in range(100):
        library.add("boiler in the cellar", metadata={"year": number})
    library.add("a boiler among many other words that say something else", metadata={"year": 1000})
    condition = {"type": "gte", "key": "year", "value": 100}
    request = SearchRequest.model_validate({"query": "boiler in the cellar", "mode": mode, "filters": condition})
    (hit,) = search(actor, request).hits
    assert hit.metadata["year"] == 1000


@pytest.mark.parametrize(
    ("condition", "path"),
    [
        ({"type": "eq", "key": "document_id", "value": "x"}, "filters.value"),
        ({"type": "gt", "key": "title", "value": "x"}, "filters.type"),
        ({"type": "gt", "key": "created_at", "value": "soon"}, "filters.value"),
        ({"type": "in", "key": "year", "value": 3}, "filters.value"),
        ({"type": "eq", "key": "year", "value": [3]}, "filters.value"),
        ({"type": "exists", "key": "year", "value": "yes"}, "filters.value"),
        (
            {"type": "or", "filters": [{"type": "eq", "key": "a", "value": 1}, {"type": "eq", "key": "url", "value": 1}]},
            "filters.filters[1].value",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_by_path(condition, path) -> None:
    with pytest.raises(InvalidInput) as caught:
        compile_filter(parse(condition))
    assert caught.value.extra["errors"][0]["path"] == path


def test_limits() -> None:
    nested = {"type": "eq", "key": "a", "value": 1}
    for _ in range(9):
        nested = {"type": "not", "filter": nested}
    with pytest.raises(InvalidInput, match="nested deeper"):
        compile_filter(parse(nested))
    many = {"type": "or", "filters": [{"type": "eq", "key": "a", "value": 1}] * 60}
    with pytest.raises(InvalidInput, match="at most 100"):
        compile_filter(parse({"type": "and", "filters": [many, many]}))
