import pytest
from pydantic import TypeAdapter

from config.errors import InvalidInput
from kb.models import Document
from retrieval.filters import Filter, compile_filter
from retrieval.requests import SearchRequest
from retrieval.search import search


def parse(data):
    return TypeAdapter(Filter).validate_python(data)


@pytest.fixture
def shelf(library):
    new = {"year": 2020, "tags": ["a", "b"], "name": "Alpha One", "draft": False, "due": "2026-03-01"}
    library.add("boiler", title="new", metadata=new)
    library.add("boiler", title="old", metadata={"year": 1990, "tags": ["b"], "name": "Beta", "draft": True, "5": "five"}, language="de")
    library.add("boiler", title="text", metadata={"year": "2020", "none": None}, url="https://example.org/x")
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
        ({"type": "lte", "key": "due", "value": "2026-03-31"}, {"new"}),
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
