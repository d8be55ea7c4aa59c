import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from config.errors import InvalidInput, PermanentProviderError
from kb.providers import (
    BatchLimits,
    Embedded,
    ModelSpec,
    Role,
    check_spec,
    document_text,
    embed,
    embed_query,
    load_provider,
    provider_names,
    query_encoder,
)
from kb.providers.hashing import HashingProvider, hash_vector

ROOT = Path(__file__).resolve().parents[3]
SPEC = ModelSpec("small", "hashing", "hashing", 64, 512, query_prefix="query: ", document_prefix="passage: ")


class Scripted:
    """A provider that answers what it is told to, and keeps what it was sent."""

    def __init__(self, vectors: np.ndarray | None = None, limits: BatchLimits | None = None) -> None:
        self.vectors = vectors
        self.limits = limits or BatchLimits(max_texts=2, max_tokens=1000)
        self.batches: list[tuple[list[str], Role]] = []

    def embed_batch(self, texts: Sequence[str], role: Role) -> Embedded:
        self.batches.append((list(texts), role))
        vectors = np.array([hash_vector(text, 64) for text in texts]) if self.vectors is None else self.vectors
        return Embedded(vectors=vectors, tokens=len(texts))


def test_vectors_come_back_in_the_order_of_the_texts_whatever_the_batches():
    texts = ["a", "a much longer text than the others", "bb", "ccc ccc", "dddd"]
    provider = Scripted()
    embedded = embed(provider, SPEC, texts, Role.DOCUMENT)
    assert [len(batch) for batch, _ in provider.batches] == [2, 2, 1]
    assert embedded.tokens == 5
    np.testing.assert_allclose(embedded.vectors, [hash_vector(text, 64) for text in texts], atol=1e-6)


def test_no_texts_make_no_call():
    provider = Scripted()
    assert embed(provider, SPEC, [], Role.DOCUMENT).vectors.shape == (0, 64)
    assert provider.batches == []


def test_vectors_have_length_one():
    embedded = embed(Scripted(np.full((2, 64), 3.0)), SPEC, ["a", "b"], Role.DOCUMENT)
    assert embedded.vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(embedded.vectors, axis=1), 1, atol=1e-6)


def test_prefixes_documents_are_sent_as_given_and_questions_get_theirs():
    provider = Scripted()
    embed(provider, SPEC, [document_text(SPEC, "text")], Role.DOCUMENT)
    embed_query(provider, SPEC, "question")
    assert provider.batches == [(["passage: text"], Role.DOCUMENT), (["query: question"], Role.QUERY)]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((1, 64)), "given 2 texts and answered with 1"),
        (np.ones((3, 64)), "given 2 texts and answered with 3"),
        (np.ones(64), "given 2 texts"),
        (np.ones((2, 32)), "vectors of 32 numbers and is registered with 64.*`dimensions`"),
        (np.full((2, 64), np.nan), "not finite"),
        (np.full((2, 64), np.inf), "not finite"),
        (np.zeros((2, 64)), "only zeros"),
    ],
)
def test_wrong_answers_are_refused(vectors, message):
    with pytest.raises(PermanentProviderError, match=message):
        embed(Scripted(vectors), SPEC, ["a", "b"], Role.DOCUMENT)


def test_a_provider_is_loaded_once_and_again_when_anything_of_its_model_changes():
    first = load_provider(SPEC)
    assert load_provider(replace(SPEC)) is first
    assert query_encoder(SPEC) is not first
    assert load_provider(replace(SPEC, parameters={"tokenizer": "estimate"})) is not first
    for number in range(8):
        load_provider(replace(SPEC, name=f"other {number}"))
    assert load_provider(SPEC) is not first


def test_an_unknown_provider_lists_the_known_ones():
    assert {"local", "openai", "hashing"} <= set(provider_names())
    with pytest.raises(InvalidInput, match="hashing"):
        load_provider(replace(SPEC, provider="nonsense"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"base_url": "http://x"}}, "no parameter base_url"),
        ({"endpoint": "http://localhost:1"}, "calls no server"),
        ({"credential": "key"}, "calls no server"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        check_spec(replace(SPEC, **changes))


def test_a_specs_text_never_shows_the_credential():
    assert "sk-secret" not in repr(replace(SPEC, credential="sk-secret"))


def test_hashing_is_deterministic_and_puts_similar_texts_near():
    spec = replace(SPEC, dimension=384)
    provider = HashingProvider(spec)
    texts = ["the red fox jumps", "the red fox sleeps", "quarterly revenue fell", ""]
    vectors = embed(provider, spec, texts, Role.DOCUMENT).vectors
    assert vectors[0] @ vectors[1] > 0.6 > vectors[0] @ vectors[2]
    np.testing.assert_array_equal(vectors, embed(HashingProvider(spec), spec, texts, Role.QUERY).vectors)


def test_importing_the_package_imports_no_model_library():
    libraries = ("openvino", "torch", "pydantic_ai", "openai", "tokenizers")
    code = f"import sys, kb.providers, kb.providers.local; print([name for name in {libraries} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
