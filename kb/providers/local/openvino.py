"""The OpenVINO backend: tokenizer, graph, vectors. Needs no torch; a compiled model is ready in a few tenths of a second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np
import openvino as ov
from tokenizers import Tokenizer

from config.errors import InvalidInput
from kb.providers.base import ModelSpec
from kb.providers.local.graph import build_model, read_shape
from kb.providers.local.weights import MappedWeights, find_folder

_PRECISION = "INFERENCE_PRECISION_HINT"
# Measured on 2 cores: less than ~500 padded tokens a thread leaves the cores idle between calls, more than ~2,000 falls out of the caches
# and costs memory. Lengths are rounded up because every new shape is compiled once and kept.
_TOKENS_PER_THREAD = 768
_LENGTH_STEP = 16
_MOST_TEXTS = 64
# Half precision errs most where few tokens share the error (least cosine to f32, measured: .9995 at 3 tokens, .99976 at 67, .9998 and
# above beyond 80): short texts, questions among them, are always computed in f32, at 1.8 times the cost a token. Both graphs share their
# constants, and each is compiled when first needed.
_SHORT = 80


class OpenVinoEncoder:
    """Thread-safe: one inference at a time, since each already uses all the threads that it was given."""

    def __init__(self, spec: ModelSpec, *, threads: int) -> None:
        folder = find_folder(spec)
        self._shape = read_shape(folder)
        self._most_tokens = min(self._shape.max_tokens, spec.max_input_tokens)
        self._budget = _TOKENS_PER_THREAD * threads
        self._tokenizer, self._padding = _open_tokenizer(folder, self._most_tokens)
        self._core = ov.Core()
        self._weights = MappedWeights(folder / "model.safetensors")
        self._model = build_model(self._weights, self._shape)
        self._precision = _choose_precision(self._core, spec.parameters.get("precision", "default"))
        self._options = {
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "ENABLE_CPU_PINNING": False,  # two pinned processes would share one core and leave the other idle
        }
        self._requests: dict[str, ov.InferRequest] = {}
        self._lock = Lock()

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, int]:
        """Vectors in the order of the texts, and the number of tokens read (padding excluded)."""
        rows = self._tokenise(texts)
        vectors = np.empty((len(texts), self._shape.hidden), dtype=np.float32)
        for length, indexes in self._batches([len(row) for row in rows]):
            vectors[indexes] = self._infer([rows[i] for i in indexes], length)
        return vectors, sum(len(row) for row in rows)

    def _tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        cleaned = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # a lone surrogate is no text for a tokenizer
        if self._shape.lower_case:
            cleaned = [text.lower() for text in cleaned]
        if len(cleaned) == 1:  # without waking the tokenizer's thread pool
            return [self._tokenizer.encode(cleaned[0]).ids]
        return [encoding.ids for encoding in self._tokenizer.encode_batch(cleaned)]

    def _batches(self, lengths: list[int]) -> list[tuple[int, list[int]]]:
        """(padded length, indexes), longest first."""
        batches: list[tuple[int, list[int]]] = []
        for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
            if batches:
                length, indexes = batches[-1]
                room = len(indexes) < _MOST_TEXTS and (len(indexes) + 1) * length <= self._budget
                if room and (length <= _SHORT) == (lengths[index] <= _SHORT):  # the precision of a text depends on itself alone
                    indexes.append(index)
                    continue
            rounded = -(-lengths[index] // _LENGTH_STEP) * _LENGTH_STEP
            batches.append((min(rounded, self._shape.positions), [index]))
        return batches

    def _infer(self, rows: list[list[int]], length: int) -> np.ndarray:
        ids = np.full((len(rows), length), self._padding, dtype=np.int64)
        mask = np.zeros((len(rows), length), dtype=np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        with self._lock:
            request = self._request_for("f32" if length <= _SHORT else self._precision)
            request.infer([ids, mask], share_inputs=True)
            return request.get_output_tensor(0).data.copy()

    def _request_for(self, precision: str) -> ov.InferRequest:
        if precision not in self._requests:
            compiled = self._core.compile_model(self._model, "CPU", {**self._options, _PRECISION: precision})
            self._requests[precision] = compiled.create_infer_request()
            self._warm_up(self._requests[precision])
        return self._requests[precision]

    def _warm_up(self, request: ov.InferRequest) -> None:
        """Weights are packed for the processor at the first inference; the originals are not read again after it."""
        request.infer([np.full((1, _LENGTH_STEP), self._padding, dtype=np.int64), np.ones((1, _LENGTH_STEP), dtype=np.int64)])
        self._weights.forget()


def _open_tokenizer(folder: Path, most_tokens: int) -> tuple[Tokenizer, int]:
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InvalidInput(f"The model folder {folder.name} has no tokenizer.json. Name a complete one, or use backend torch.")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(most_tokens)  # the file's own value may be lower than what the model reads
    return tokenizer, tokenizer.token_to_id("[PAD]") or 0


def _choose_precision(core: ov.Core, wanted: str) -> str:
    """The processor's own choice unless told otherwise: bf16 where it computes with it, else f32."""
    return core.get_property("CPU", _PRECISION).to_string() if wanted == "default" else wanted
