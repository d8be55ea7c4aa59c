"""The `ollama` provider: its own /api/embed. Its OpenAI-shaped path would cut a long text in silence, and knows no `keep_alive`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kb.providers.base import BatchLimits, Role
from kb.providers.remote import Call, RemoteProvider


class OllamaProvider(RemoteProvider):
    default_endpoint = "http://localhost:11434"
    defaults = BatchLimits(max_texts=32, max_tokens=16_000)  # it computes on its own machine: many texts would take longer than a call may

    def make_call(self, texts: Sequence[str], role: Role) -> Call:
        keep_alive = self._spec.parameters.get("keep_alive")
        body = {"model": self._spec.model, "input": list(texts), "truncate": False, **self.dimensions("dimensions")}
        return Call(self.url("api/embed"), body | ({} if keep_alive is None else {"keep_alive": keep_alive}), self.bearer())

    def read_answer(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[list[Any], Any]:
        return body["embeddings"], body.get("prompt_eval_count")
