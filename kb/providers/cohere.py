"""The `cohere` provider: /v2/embed, which knows whether a text is a document or a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kb.providers.base import BatchLimits, Role
from kb.providers.remote import Call, RemoteProvider

INPUT_TYPES = {Role.DOCUMENT: "search_document", Role.QUERY: "search_query"}


class CohereProvider(RemoteProvider):
    default_endpoint = "https://api.cohere.com/v2"
    defaults = BatchLimits(max_texts=96, max_tokens=100_000)

    def make_call(self, texts: Sequence[str], role: Role) -> Call:
        body = {"model": self._spec.model, "texts": list(texts), "input_type": INPUT_TYPES[role], "embedding_types": ["float"]}
        return Call(self.url("embed"), {**body, "truncate": "NONE", **self.dimensions("output_dimension")}, self.bearer())

    def read_answer(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[list[Any], Any]:
        units = (body.get("meta") or {}).get("billed_units") or {}
        return body["embeddings"]["float"], int(units.get("input_tokens") or 0)
