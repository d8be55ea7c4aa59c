"""Fingerprints change with what changes the result, and with nothing else."""

from typing import Any

import pytest

from kb.schemas.fingerprints import chunk_fingerprint, context_fingerprint, embed_fingerprint, extract_fingerprint, fingerprint
from kb.schemas.source import SourceSettings

CHUNK: dict[str, Any] = {
    "strategy": "structure",
    "target_tokens": 216,
    "overlap_tokens": 17,
    "min_chars": 120,
    "tokenizer": "all-MiniLM-L6-v2",
}
EMBED: dict[str, Any] = {
    "provider": "local",
    "model": "all-MiniLM-L6-v2",
    "dimension": 384,
    "query_prefix": "",
    "document_prefix": "",
    "parameters": {},
}


def test_released_fingerprints_stay() -> None:
    """A change here makes every installation do every document again."""
    assert extract_fingerprint(SourceSettings()) == "e3a75b2caf6c3725059aceff3e9972f8"
    assert chunk_fingerprint(**CHUNK) == "d34ffe32ad9a5b435c1abb57839e09ca"
    assert context_fingerprint(language="auto") == "44f7ff205dd672973273d0e0d71a9fa8"
    assert embed_fingerprint(**EMBED) == "6c09336ed02c9cda508fdd69ab35d424"


def test_order_and_spelling_of_numbers_do_not_matter() -> None:
    assert fingerprint({"a": 1, "b": [1.0, {"c": 2}]}) == fingerprint({"b": [1, {"c": 2.0}], "a": 1.0})


def test_stages_do_not_share_fingerprints() -> None:
    assert fingerprint({}, stage="extract") != fingerprint({}, stage="chunk")


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ({"max_content_length": 50}, True),
        ({"comments": True}, True),
        ({"time_budget_minutes": 60}, False),
        ({"max_segments_per_run": 1}, False),
        ({"max_deletion_share": 1.0}, False),
    ],
)
def test_extract(change: dict[str, Any], again: bool) -> None:
    assert (extract_fingerprint(SourceSettings(**change)) != extract_fingerprint(SourceSettings())) is again


@pytest.mark.parametrize(
    "change", [{"strategy": "recursive"}, {"target_tokens": 215}, {"overlap_tokens": 0}, {"min_chars": 0}, {"tokenizer": "estimate"}]
)
def test_chunk(change: dict[str, Any]) -> None:
    assert chunk_fingerprint(**{**CHUNK, **change}) != chunk_fingerprint(**CHUNK)


@pytest.mark.parametrize("change", [{"language": "de"}, {"document_prefix": "passage: "}, {"reserve_tokens": 0}])
def test_context(change: dict[str, Any]) -> None:
    assert context_fingerprint(**{"language": "auto", **change}) != context_fingerprint(language="auto")


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ({"provider": "openai"}, True),
        ({"model": "other"}, True),
        ({"dimension": 256}, True),
        ({"query_prefix": "query: "}, True),
        ({"document_prefix": "passage: "}, True),
        ({"parameters": {"precision": "f32"}}, True),
        ({"parameters": {"dimensions": 384}}, True),
        ({"parameters": {"a_new_one": 1}}, True),
        ({"parameters": {"backend": "torch", "device": "cuda"}}, False),
        ({"parameters": {"timeout": 5, "batch_texts": 8, "batch_tokens": 9}}, False),
        ({"parameters": {"dimensions": None}}, False),
        ({"parameters": None}, False),
    ],
)
def test_embed(change: dict[str, Any], again: bool) -> None:
    assert (embed_fingerprint(**{**EMBED, **change}) != embed_fingerprint(**EMBED)) is again
