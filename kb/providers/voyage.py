"""The `voyage` provider: /v1/embeddings in Voyage's own form, with roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kb.providers.base import BatchLimits, Role
from kb.providers.remote import Call, RemoteProvider, by_index


class VoyageProvider(RemoteProvider):
    default_endpoint = "https://api.voyageai.com/v1"
    defaults = BatchLimits(max_texts=128, max_tokens=100_000)

    def make_call(self, texts: Sequence[str], role: Role) -> Call:
        body = {"model": self._spec.model, "input": list(texts), "input_type": role.value, "truncation": False}
        return Call(self.url("embeddings"), body | self.dimensions("output_dimension"), self.bearer())

    def read_answer(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[list[Any], Any]:
        return by_index(body["data"], "embedding"), (body.get("usage") or {}).get("total_tokens")
