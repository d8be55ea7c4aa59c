import importlib.util
import json
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from config.errors import InvalidInput
from kb.providers.base import ModelSpec, Role, embed, embed_query
from kb.providers.local import LocalProvider
from kb.providers.local.graph import read_shape
from kb.providers.local.weights import PACKAGED_SHA256, check_weights
from kb.providers.tokens import PACKAGED_MODEL, packaged_folder
from tests.kb.providers.agreement import REFERENCE_FILE, REFERENCES, varied_texts

SPEC = ModelSpec("default", "local", PACKAGED_MODEL, 384, 256)
needs_torch = pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is None, reason="torch is not installed (make torch)")


@pytest.fixture(scope="module")
def provider() -> LocalProvider:
    return LocalProvider(SPEC)


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


@pytest.mark.parametrize(("precision", "least"), [("default", 0.9998), ("f32", 0.99999)])
def test_vectors_agree_with_committed_ones_of_sentence_transformers(precision, least):
    spec = replace(SPEC, parameters={"precision": precision})
    vectors = embed(LocalProvider(spec), spec, varied_texts()[:REFERENCES], Role.DOCUMENT).vectors
    assert cosines(vectors, np.load(REFERENCE_FILE).astype(np.float32)).min() >= least


@needs_torch
@pytest.mark.parametrize(("precision", "least"), [("default", 0.9998), ("f32", 0.99999)])
def test_every_vector_agrees_with_sentence_transformers(precision, least, references):
    spec = replace(SPEC, parameters={"precision": precision})
    vectors = embed(LocalProvider(spec), spec, varied_texts(), Role.DOCUMENT).vectors
    assert len(vectors) >= 300
    assert cosines(vectors, references).min() >= least


@needs_torch
def test_the_torch_backend_gives_the_vectors_of_the_library(references):
    spec = replace(SPEC, parameters={"backend": "torch"})
    embedded = embed(LocalProvider(spec), spec, varied_texts()[:40], Role.DOCUMENT)
    assert cosines(embedded.vectors, references[:40]).min() >= 0.99999


@pytest.fixture(scope="module")
def references() -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(packaged_folder()), device="cpu").encode(varied_texts(), show_progress_bar=False)


def test_order_and_batch_do_not_change_a_vector(provider):
    texts = varied_texts()[:60]
    together = embed(provider, SPEC, texts, Role.DOCUMENT).vectors
    backwards = embed(provider, SPEC, texts[::-1], Role.DOCUMENT).vectors[::-1]
    alone = np.array([embed_query(provider, SPEC, text).vectors[0] for text in texts[::6]])
    assert cosines(together, backwards).min() >= 0.9999
    assert cosines(together[::6], alone).min() >= 0.9998


def test_nearest_is_what_is_meant(provider):
    passages = ["Passwords are reset under Account, Security.", "The invoice is due within thirty days.", "Dogs are kept on a leash."]
    vectors = embed(provider, SPEC, passages, Role.DOCUMENT).vectors
    assert (vectors @ embed_query(provider, SPEC, "I forgot how to log in").vectors[0]).argmax() == 0


def test_tokens_counted_are_those_read(provider):
    assert embed(provider, SPEC, ["hello world", "word " * 1000], Role.DOCUMENT).tokens == 4 + 256
    short = replace(SPEC, max_input_tokens=64)
    assert embed(LocalProvider(short, threads=1), short, ["word " * 1000], Role.DOCUMENT).tokens == 64


def test_odd_texts_have_vectors(provider):
    vectors = embed(provider, SPEC, ["", " ", "\x00", "\ud800 lone", "\u200b"], Role.DOCUMENT).vectors
    assert np.isfinite(vectors).all()


def test_several_threads_share_one_encoder(provider):
    expected = embed_query(provider, SPEC, "the boundary layer").vectors[0]
    found: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: found.append(embed_query(provider, SPEC, "the boundary layer").vectors[0])) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for vector in found:
        np.testing.assert_array_equal(vector, expected)


def test_changed_weights_are_refused(tmp_path: Path):
    folder = shutil.copytree(packaged_folder(), tmp_path / "model")
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(InvalidInput, match=r"not the expected ones.*install the model's package again"):
        check_weights(weights, sha256=PACKAGED_SHA256)
    with pytest.raises(InvalidInput, match="not the expected ones"):
        LocalProvider(replace(SPEC, model=str(folder), parameters={"sha256": PACKAGED_SHA256}))


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("config.json", {"model_type": "roberta"}, "'roberta'.*backend to torch"),
        ("config.json", {"position_embedding_type": "relative_key"}, "backend to torch"),
        ("config.json", {"hidden_act": "silu"}, "'silu'.*backend to torch"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "mean_tokens, max_tokens.*backend to torch"),
    ],
)
def test_other_architectures_are_refused_and_pointed_to_torch(tmp_path: Path, file, changes, message):
    folder = shutil.copytree(packaged_folder(), tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InvalidInput, match=message):
        read_shape(folder)


def test_a_folder_without_its_files_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"no config\.json"):
        LocalProvider(replace(SPEC, model=str(tmp_path)))


@pytest.mark.parametrize(("content", "message"), [(None, r"no model\.safetensors"), (b"", "damaged"), (b"no weights at all", "damaged")])
def test_weights_that_cannot_be_read_are_refused(tmp_path: Path, content, message):
    folder = shutil.copytree(packaged_folder(), tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    if content is not None:
        (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        LocalProvider(replace(SPEC, model=str(folder)))


def test_the_pooling_by_cls_token_is_read(tmp_path: Path):
    folder = shutil.copytree(packaged_folder(), tmp_path / "model")
    path = folder / "1_Pooling" / "config.json"
    path.write_text(json.dumps({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}))
    spec = replace(SPEC, model=str(folder))
    by_cls = embed(LocalProvider(spec, threads=1), spec, ["hello there"], Role.DOCUMENT).vectors
    assert by_cls.shape == (1, 384)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"backend": "onnx"}}, "openvino, torch"),
        ({"parameters": {"precision": "f16"}}, "default, f32, bf16"),
        ({"parameters": {"device": "cuda"}}, "ignores device"),
        ({"parameters": {"backend": "torch", "precision": "f32"}}, "ignores precision"),
        ({"endpoint": "http://localhost"}, "calls no server"),
        ({"model": "some/hub-name"}, "set parameters.backend to torch"),
    ],
)
def test_wrong_settings_say_what_to_do(changes, message):
    with pytest.raises(InvalidInput, match=message):
        LocalProvider(replace(SPEC, **changes))


def test_without_torch_the_torch_backend_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # as if it were not installed
    with pytest.raises(InvalidInput, match="make torch"):
        LocalProvider(replace(SPEC, parameters={"backend": "torch"}))
