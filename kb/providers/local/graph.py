"""A BERT encoder as an OpenVINO graph, written from the safetensors of a sentence-transformers folder.

The graph takes token ids and a mask and gives sentence vectors: encoder, pooling and normalisation in one. No torch, no conversion, no
network. The weights stay memory-mapped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op

from config.errors import InvalidInput
from kb.providers.local.weights import MappedWeights

_USE_TORCH = "Set parameters.backend to torch for this model (and install it: make torch)."
_ACTIVATIONS = {
    "gelu": lambda x: op.gelu(x, "erf"),
    "gelu_new": lambda x: op.gelu(x, "tanh"),
    "gelu_pytorch_tanh": lambda x: op.gelu(x, "tanh"),
    "relu": op.relu,
}
_POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """What the graph needs to know of a model; `read_shape` refuses what it cannot express."""

    layers: int
    heads: int
    hidden: int
    epsilon: float
    activation: str
    positions: int
    pooling: str
    normalise: bool
    max_tokens: int
    lower_case: bool


def read_shape(folder: Path) -> EncoderShape:
    """The encoder described by a sentence-transformers folder; InvalidInput, naming the torch backend, for any other architecture."""
    config = _read_json(folder, "config.json")
    if config.get("model_type") != "bert":
        raise InvalidInput(f"The openvino backend reads BERT encoders, and {folder.name} is {config.get('model_type')!r}. {_USE_TORCH}")
    if config.get("position_embedding_type", "absolute") != "absolute" or config.get("is_decoder"):
        raise InvalidInput(f"The openvino backend reads plain BERT encoders with absolute positions; {folder.name} differs. {_USE_TORCH}")
    if config["hidden_act"] not in _ACTIVATIONS:
        raise InvalidInput(f"The openvino backend does not know the activation {config['hidden_act']!r} of {folder.name}. {_USE_TORCH}")
    kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in _read_json(folder, "modules.json")]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise InvalidInput(f"The openvino backend does not know the modules {', '.join(kinds)} of {folder.name}. {_USE_TORCH}")
    sentence = _read_json(folder, "sentence_bert_config.json")
    return EncoderShape(
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        hidden=config["hidden_size"],
        epsilon=config["layer_norm_eps"],
        activation=config["hidden_act"],
        positions=config["max_position_embeddings"],
        pooling=_read_pooling(folder),
        normalise=kinds[-1] == "Normalize",
        max_tokens=min(sentence.get("max_seq_length") or config["max_position_embeddings"], config["max_position_embeddings"]),
        lower_case=bool(sentence.get("do_lower_case")),
    )


def build_model(weights: MappedWeights, shape: EncoderShape) -> ov.Model:
    """The graph `(input_ids, attention_mask) -> vectors`. Its constants lie in the mapped file, so `weights` must outlive it."""
    return _Writer(weights, shape).write()


class _Writer:
    def __init__(self, weights: MappedWeights, shape: EncoderShape):
        self.weights = weights
        self.shape = shape
        names = weights.names
        self.prefix = next((prefix for prefix in ("", "bert.") if f"{prefix}embeddings.word_embeddings.weight" in names), None)
        if self.prefix is None:
            raise InvalidInput(f"The weights do not hold the tensors of a BERT encoder. {_USE_TORCH}")

    def write(self) -> ov.Model:
        ids = op.parameter([-1, -1], np.int64, name="input_ids")
        mask = op.parameter([-1, -1], np.int64, name="attention_mask")
        weight = op.convert(mask, "f32")
        penalty = op.multiply(op.subtract(_scalar(1.0), op.unsqueeze(weight, _ints([1, 2]))), _scalar(-1e9))
        state = self._embed(ids)
        for layer in range(self.shape.layers):
            state = self._block(state, penalty, f"encoder.layer.{layer}.")
        vectors = self._pool(state, weight)
        if self.shape.normalise:
            vectors = op.normalize_l2(vectors, _ints([1]), 1e-24, "add")
        return ov.Model([op.result(vectors)], [ids, mask], "sentence_encoder")

    def _tensor(self, name: str) -> np.ndarray:
        return self.weights.read(self.prefix + name)

    def _constant(self, name: str) -> ov.Node:
        return op.constant(self._tensor(name), shared_memory=True)

    def _embed(self, ids: ov.Node) -> ov.Node:
        words = op.gather(self._constant("embeddings.word_embeddings.weight"), ids, _scalar(0, np.int64))
        # Token type is always 0 for single sentences: its row is folded into the position table.
        table = self._tensor("embeddings.position_embeddings.weight") + self._tensor("embeddings.token_type_embeddings.weight")[0]
        length = op.gather(op.shape_of(ids, "i64"), _ints([1]), _scalar(0, np.int64))
        positions = op.slice(op.constant(table), _ints([0]), length, _ints([1]), _ints([0]))
        return self._norm(op.add(words, positions), "embeddings.LayerNorm.")

    def _block(self, state: ov.Node, penalty: ov.Node, name: str) -> ov.Node:
        query, key, value = (self._heads(self._linear(state, f"{name}attention.self.{part}.")) for part in ("query", "key", "value"))
        mixed = op.scaled_dot_product_attention(query, key, value, penalty)
        mixed = op.reshape(op.transpose(mixed, _ints([0, 2, 1, 3])), _ints([0, 0, self.shape.hidden]), special_zero=True)
        mixed = self._linear(mixed, f"{name}attention.output.dense.")
        state = self._norm(op.add(mixed, state), f"{name}attention.output.LayerNorm.")
        inner = _ACTIVATIONS[self.shape.activation](self._linear(state, f"{name}intermediate.dense."))
        return self._norm(op.add(self._linear(inner, f"{name}output.dense."), state), f"{name}output.LayerNorm.")

    def _heads(self, state: ov.Node) -> ov.Node:
        size = self.shape.hidden // self.shape.heads
        return op.transpose(op.reshape(state, _ints([0, 0, self.shape.heads, size]), special_zero=True), _ints([0, 2, 1, 3]))

    def _linear(self, state: ov.Node, name: str) -> ov.Node:
        product = op.matmul(state, self._constant(f"{name}weight"), transpose_a=False, transpose_b=True)
        return op.add(product, self._constant(f"{name}bias"))

    def _norm(self, state: ov.Node, name: str) -> ov.Node:
        centred = op.mvn(state, _ints([-1]), normalize_variance=True, eps=self.shape.epsilon, eps_mode="inside_sqrt")
        return op.add(op.multiply(centred, self._constant(f"{name}weight")), self._constant(f"{name}bias"))

    def _pool(self, state: ov.Node, weight: ov.Node) -> ov.Node:
        if self.shape.pooling == "cls":
            return op.gather(state, _scalar(0, np.int64), _scalar(1, np.int64))
        spread = op.unsqueeze(weight, _ints([-1]))
        total = op.reduce_sum(op.multiply(state, spread), _ints([1]))
        return op.divide(total, op.maximum(op.reduce_sum(spread, _ints([1])), _scalar(1e-9)))


def _read_pooling(folder: Path) -> str:
    modules = _read_json(folder, "modules.json")
    config = _read_json(folder, f"{modules[1]['path']}/config.json")
    modes = [key.removeprefix("pooling_mode_") for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    known = {key.removeprefix("pooling_mode_"): name for key, name in _POOLINGS.items()}
    if len(modes) != 1 or modes[0] not in known:
        raise InvalidInput(f"The openvino backend pools by mean or cls, {folder.name} asks for {', '.join(modes)}. {_USE_TORCH}")
    return known[modes[0]]


def _read_json(folder: Path, name: str) -> Any:
    path = folder / name
    if not path.is_file():
        raise InvalidInput(f"{folder.name} has no {name}, so it is not a sentence-transformers folder. Name a complete one. {_USE_TORCH}")
    return json.loads(path.read_text(encoding="utf-8"))


def _scalar(value: float, kind: type = np.float32) -> ov.Node:
    return op.constant(np.array(value, dtype=kind))


def _ints(values: list[int]) -> ov.Node:
    return op.constant(np.array(values, dtype=np.int64))
