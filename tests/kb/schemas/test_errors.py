"""Errors name the place as a person would, say what to do, and repeat no value that may be secret."""

from typing import Any

import pytest
from pydantic import ValidationError

from config.errors import InvalidInput
from kb.schemas import KnowledgeBaseDocument, explain, load

SITE = {"name": "site", "web": {"start_url": "https://a.example/"}}


def errors_of(values: dict[str, Any]) -> list[dict[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        load(values)
    return caught.value.extra["errors"]


@pytest.mark.parametrize(
    ("values", "path", "said"),
    [
        ({}, "name", "is required."),
        ({"name": "kb", "Name": 1}, "Name", "Did you mean 'name'?"),
        ({"name": "kb", "kbId": "x"}, "kbId", "is not a known key."),
        ({"name": "kb", "chunking": {"chunk_size": 5}}, "chunking.chunk_size", "Known here: strategy, target_tokens"),
        ({"name": "kb", "sources": [{**SITE, "maxPages": 5}]}, "sources[site].maxPages", "Known here: id, name"),
        ({"name": "kb", "sources": [{**SITE, "web": {"startUrl": "x"}}]}, "sources[site].web.start_url", "is required."),
        ({"name": "kb", "sources": [{"type": "upload"}]}, "sources[0].name", "is required."),
        ({"name": "kb", "sources": ["x"]}, "sources[0]", "must be an object."),
        ({"name": "kb", "sources": {}}, "sources", "must be a list."),
        ({"name": "kb", "retrieval": {"max_results": 0}}, "retrieval.max_results", "must be at least 1."),
        ({"name": "kb", "retrieval": {"max_results": 1.5}}, "retrieval.max_results", "must be a whole number."),
        ({"name": "kb", "retrieval": {"min_score": {"vector": float("nan")}}}, "retrieval.min_score.vector", "finite"),
        ({"name": "kb", "retrieval": {"mode": "x"}}, "retrieval.mode", "must be one of: 'vector', 'keyword' or 'hybrid'."),
        ({"name": "kb", "visibility": None}, "visibility", "must be one of"),
        ({"name": "kb", "store": {"type": "oracle"}}, "store.type", "'pgvector'"),
        ({"name": "kb", "store": []}, "store", "must be an object."),
        ({"name": "kb\ud800"}, "name", "U+D800"),
        ({"name": "kb", "\ud800": 1}, "", "lone surrogate"),
        ({"name": "kb", "chunking": {"overlap": 500}}, "chunking.overlap", "fewer than the target"),
        ({"name": "kb", "chunking": {"target_tokens": 64, "overlap": 64}}, "chunking.overlap", "fewer than the target"),
    ],
)
def test_path_and_message(values: dict[str, Any], path: str, said: str) -> None:
    first = errors_of(values)[0]
    assert first["path"] == path
    assert said in first["message"]


def test_all_problems_at_once() -> None:
    values = {"name": "", "retrieval": {"max_results": 0, "x": 1}, "sources": [{**SITE, "cron": "x"}]}
    found = errors_of(values)
    assert {error["path"] for error in found} == {"name", "retrieval.max_results", "retrieval.x", "sources[site].cron"}
    with pytest.raises(InvalidInput, match=r"name: .* \(3 more: see errors.\)"):
        load(values)


def test_without_the_document_entries_have_numbers() -> None:
    with pytest.raises(ValidationError) as caught:
        KnowledgeBaseDocument.model_validate({"name": "kb", "sources": [{**SITE, "x": 1}]})
    assert explain(caught.value)[0]["path"] == "sources[0].x"


@pytest.mark.parametrize(
    "values",
    [
        {"name": "kb", "api_key": "hunter2hunter2"},
        {"name": "kb", "store": {"parameters": {"password": "hunter2hunter2"}}},
        {"name": "kb", "store": {"type": "qdrant", "parameters": {"api_key": "hunter2hunter2"}}},
        {"name": "kb", "store": {"type": "pgvector", "password": "hunter2hunter2"}},
        {"name": "kb", "description": {"a": "hunter2hunter2"}},
        {"name": "kb", "sources": [{"name": "s", "web": {"start_url": "https://u:hunter2@a.example/"}}]},
    ],
)
def test_values_are_not_repeated(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        load(values)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value.extra)


def test_there_is_an_end_to_errors() -> None:
    found = errors_of({"name": "kb", **{f"key{number}": 1 for number in range(1000)}})
    assert len(found) == 50


def test_unprintable_keys_are_shown_escaped() -> None:
    assert errors_of({"name": "kb", "a\x1b[31m": 1})[0]["path"] == "a\\x1b[31m"
