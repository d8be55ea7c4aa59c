import json
from datetime import datetime
from typing import Literal

import pytest
from django.test import RequestFactory
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field
from rest_framework.exceptions import UnsupportedMediaType

from config.body import MAX_DEPTH, parse_body, parse_json
from config.errors import InvalidInput, TooLarge


class Web(BaseModel):
    url: str
    max_pages: int = Field(10, ge=1, le=100)


class Source(BaseModel):
    name: str = Field(min_length=1)
    web: Web | None = None
    kind: Literal["web", "upload"] = "web"
    since: datetime | None = None


class Document(BaseModel):
    name: str
    sources: list[Source] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


def request(body, content_type="application/json"):
    return RequestFactory().post("/", body, content_type=content_type)


def errors(body, schema=Document):
    with pytest.raises(InvalidInput) as caught:
        parse_body(request(body if isinstance(body, (bytes, str)) else json.dumps(body)), schema)
    return caught.value


def test_a_body_becomes_the_schema():
    found = parse_body(request('\ufeff{"name": "a", "sources": [{"name": "s", "since": "2026-01-01T00:00:00Z"}]}'), Document)
    assert found.sources[0].since.year == 2026
    assert parse_body(request("[1, 2]"), list[int]) == [1, 2]
    assert parse_body(request('{"any": 1}'), Open).any == 1


def test_unknown_keys_are_named_by_path_at_every_level():
    error = errors({"name": "a", "nmae": "b", "sources": [{"name": "s", "web": {"url": "u", "depth": 1}}]})
    assert error.extra["errors"] == [
        {"path": "sources[0].web.depth", "message": "this key is not known; remove it or correct its name"},
        {"path": "nmae", "message": "this key is not known; remove it or correct its name"},
    ]
    assert "and 1 more" in str(error)


def test_faults_are_named_by_path_and_never_repeat_the_value():
    error = errors({"sources": [{"name": "", "kind": "hunter2", "web": {"url": 3, "max_pages": 1000}}]})
    assert {found["path"] for found in error.extra["errors"]} == {
        "name",
        "sources[0].name",
        "sources[0].kind",
        "sources[0].web.url",
        "sources[0].web.max_pages",
    }
    assert "hunter2" not in str(error) + json.dumps(error.extra)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"name": "\xe9"}', "UTF-8"),
        (b"{", "line 1"),
        (b"name=a", "not JSON"),
        (b'{"name": 1' + b"0" * 5000 + b"}", "too many digits"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"name":' * 5000 + b"1" + b"}" * 5000, "nested deeper"),
        (b'{"a": "x"} trailing', "not JSON"),
    ],
)
def test_what_is_not_json(body, said):
    assert said in str(errors(body))


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ('{"sources": [{"name": "a\\u0000b"}]}', "sources[0].name"),
        ('{"sources": [{"name": "a\\ud800b"}]}', "sources[0].name"),
        ('{"a\\u0000": 1}', "a\\x00"),
        ('{"\\udfff": 1}', "\\udfff"),
        ('{"a": [1, NaN]}', "a[1]"),
        ('{"a": -Infinity}', "a"),
        ('{"a": 1e999}', "a"),
        ('{"a": [{"b": 1, "c": 2, "b": 3}]}', "a[0].b"),
        ('{"a": {"\\u0061": 1, "a": 2}}', "a.a"),
        ('"\\u0000"', ""),
    ],
)
def test_what_cannot_be_stored_is_named_by_path(body, path):
    error = errors(body)
    assert [found["path"] for found in error.extra["errors"]] == [path]
    json.dumps(error.extra).encode("utf-8")
    str(error).encode("utf-8")


def test_depth_is_counted():
    assert parse_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(InvalidInput, match="nested deeper"):
        parse_json(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))


def test_surrogate_pairs_are_characters():
    assert parse_json(b'"\\ud83d\\ude00"') == "😀"


def test_other_media_types_and_sizes_are_refused():
    with pytest.raises(UnsupportedMediaType, match="application/json"):
        parse_body(request("name=a", "application/x-www-form-urlencoded"), Document)
    assert parse_body(request('{"name": "a"}', "application/merge-patch+json; charset=utf-8"), Document).name == "a"
    with pytest.raises(TooLarge, match="at most 5"):
        parse_body(request('{"name": "a"}'), Document, max_bytes=5)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: json.dumps({"name": text}).encode()))
def test_any_bytes_are_parsed_or_refused(body):
    try:
        parse_body(request(body), Document)
    except InvalidInput as error:
        str(error).encode("utf-8")
