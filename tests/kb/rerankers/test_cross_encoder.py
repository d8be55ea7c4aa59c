"""The cross-encoder in process: a tiny BERT with random weights, saved here, so that nothing is fetched."""

import importlib.util
import time
from pathlib import Path

import pytest

from config.errors import InvalidInput, PermanentProviderError
from kb.rerankers import Late, RerankerSpec, check_reranker, load_reranker, rerank
from kb.rerankers.cross_encoder import CrossEncoderReranker

needs_torch = pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is None, reason="torch is not installed (make torch)")
QUERY = "when is the invoice due"
PASSAGES = ["the cat sleeps", "the invoice is due in thirty days after it came", "an invoice", "due", "", "x " * 500] * 4


def save_model(folder: Path, *, labels: int = 1) -> str:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    words = sorted({word for passage in PASSAGES for word in passage.split()} | set(QUERY.split()))
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])}
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    torch.manual_seed(7)
    model = BertForSequenceClassification(
        BertConfig(vocab_size=len(vocabulary), num_labels=labels, max_position_embeddings=128, initializer_range=1.0, **sizes)
    )
    model.save_pretrained(folder)
    BertTokenizerFast(vocab=vocabulary, model_max_length=128).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("bert"))


@needs_torch
def test_scores_are_those_of_the_library(folder):
    from sentence_transformers import CrossEncoder

    spec = RerankerSpec("own", "cross-encoder", folder, timeout=60, trusted=True)
    scores = rerank(load_reranker(spec), spec, QUERY, PASSAGES)
    expected = CrossEncoder(folder).predict([(QUERY, passage) for passage in PASSAGES])
    assert scores == pytest.approx([float(score) for score in expected], abs=1e-5)
    assert len({round(score, 3) for score in scores}) > 3  # a model that says the same of all would prove nothing


@needs_torch
def test_whoever_asks_waits_no_longer_than_its_time(folder):
    spec = RerankerSpec("own", "cross-encoder", folder, timeout=0.001, trusted=True)
    reranker = CrossEncoderReranker(spec)
    started = time.monotonic()
    with pytest.raises(Late):
        rerank(reranker, spec, QUERY, PASSAGES)
    assert time.monotonic() - started < 1
    # It went on loading, and serves who comes later.
    assert len(rerank(reranker, spec, QUERY, PASSAGES, seconds=60)) == len(PASSAGES)


@needs_torch
def test_a_model_that_is_none_says_so(tmp_path):
    spec = RerankerSpec("own", "cross-encoder", str(tmp_path / "nowhere"), timeout=60, trusted=True)
    with pytest.raises(PermanentProviderError, match="could not be loaded"):
        rerank(load_reranker(spec), spec, QUERY, PASSAGES)


@needs_torch
def test_a_model_of_classes_is_refused(tmp_path):
    spec = RerankerSpec("own", "cross-encoder", save_model(tmp_path, labels=3), timeout=60, trusted=True)
    with pytest.raises(PermanentProviderError, match="3 classes"):
        rerank(load_reranker(spec), spec, QUERY, PASSAGES)


def test_without_torch_it_is_refused_with_a_sentence(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "sentence_transformers" else found(name, *rest))
    with pytest.raises(InvalidInput, match="make torch"):
        check_reranker(RerankerSpec("own", "cross-encoder", "/models/own"))
