"""The torch backend: any sentence-transformers model by name or path, on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from config.errors import InvalidInput, PermanentProviderError, TransientProviderError
from kb.providers.base import ModelSpec
from kb.providers.local.weights import find_folder
from kb.providers.tokens import local_folder

_BATCH = 16


class TorchEncoder:
    def __init__(self, spec: ModelSpec, *, threads: int) -> None:
        library, torch = _import_libraries(spec)
        source = str(find_folder(spec)) if local_folder(spec.model) is not None else spec.model
        try:
            model = library.SentenceTransformer(source, device=spec.parameters.get("device"))
        except (OSError, ValueError) as error:
            raise PermanentProviderError(
                f"The model {spec.name} could not be loaded from {source!r}: {str(error)[:300]} "
                "Check the name, or copy the model to this machine."
            ) from error
        if model.device.type == "cpu":
            torch.set_num_threads(threads)
        model.default_prompt_name = None  # prefixes are the model row's, and the text sent is the text stored
        model.max_seq_length = min(model.max_seq_length or spec.max_input_tokens, spec.max_input_tokens)
        self._model, self._name, self._out_of_memory = model, spec.name, torch.cuda.OutOfMemoryError

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, int]:
        cleaned = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        try:
            vectors = self._model.encode(cleaned, batch_size=_BATCH, convert_to_numpy=True, show_progress_bar=False)
        except self._out_of_memory:
            raise TransientProviderError(f"{self._name} filled the GPU's memory. Give it less to do, or set device to cpu.") from None
        rows = self._model.tokenizer(cleaned, truncation=True, max_length=self._model.max_seq_length)["input_ids"]
        return np.asarray(vectors, dtype=np.float32), sum(len(row) for row in rows)


def _import_libraries(spec: ModelSpec) -> tuple[Any, Any]:
    try:
        import sentence_transformers
        import torch
    except ImportError:
        raise InvalidInput(
            f"The model {spec.name} asks for the torch backend, which is not installed. Install it (make torch), "
            "or set parameters.backend to openvino."
        ) from None
    return sentence_transformers, torch
