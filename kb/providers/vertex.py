"""The `vertex` provider: text embedding models of Google Cloud, by predict, newer ones by embedContent, which takes one text a call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote

from config.errors import InvalidInput
from config.http import Fetched
from kb.providers.base import BatchLimits, ModelSpec, Role
from kb.providers.gemini import google_refusal
from kb.providers.google_identity import Identity, check_identity
from kb.providers.google_tasks import check_task, prompted, task_type
from kb.providers.remote import Call, RemoteProvider

_NAME = re.compile(r"[a-z0-9][a-z0-9.:-]{0,99}")  # they become part of a host name and of a path
_MULTI_REGIONS = ("us", "eu")


class VertexProvider(RemoteProvider):
    defaults = BatchLimits(max_texts=100, max_tokens=16_000)  # of 250 texts and 20,000 tokens, which are counted by another tokenizer

    def __init__(self, spec: ModelSpec, *, threads: int | None = None) -> None:
        super().__init__(spec, threads=threads)
        if self._one_by_one:
            self.limits = BatchLimits(max_texts=1, max_tokens=self.limits.max_tokens)

    @classmethod
    def check(cls, spec: ModelSpec) -> None:
        super().check(spec)
        check_task(spec)
        check_identity(spec)
        for name in ("project", "location"):
            value = spec.parameters.get(name, "us-central1" if name == "location" else None)
            if not isinstance(value, str) or not _NAME.fullmatch(value):
                raise InvalidInput(f"The parameter {name} of the model {spec.name} is {value!r}. Give it as Google Cloud shows it.")

    def make_call(self, texts: Sequence[str], role: Role) -> Call:
        task = task_type(self._spec, role)
        said = [prompted(self._spec, text, role) for text in texts]
        headers = {"Authorization": f"Bearer {self._identity.token()}"}
        if self._by_content:
            body: dict[str, Any] = {"content": {"parts": [{"text": said[0]}]}, "embedContentConfig": self._config(task)}
            return Call(f"{self._model_url}:embedContent", body, headers)
        instances = [{"content": text, **({"task_type": task} if task else {})} for text in said]
        parameters = {"autoTruncate": False, **self.dimensions("outputDimensionality")}
        return Call(f"{self._model_url}:predict", {"instances": instances, "parameters": parameters}, headers)

    def read_answer(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[list[Any], Any]:
        if self._by_content:
            return [body["embedding"]["values"]], (body.get("usageMetadata") or {}).get("promptTokenCount")
        found = [prediction["embeddings"] for prediction in body["predictions"]]
        return [item["values"] for item in found], sum(int((item.get("statistics") or {}).get("token_count") or 0) for item in found)

    def refusal(self, answer: Fetched, body: object) -> Exception:
        if answer.status == 401:
            self._identity.forget()
        return google_refusal(self._spec, answer, body)

    def _config(self, task: str | None) -> dict[str, Any]:
        return {"autoTruncate": False, **({"taskType": task} if task else {}), **self.dimensions("outputDimensionality")}

    @property
    def _by_content(self) -> bool:
        return "gemini" in self._spec.model and self._spec.model != "gemini-embedding-001"

    @property
    def _one_by_one(self) -> bool:
        return "gemini" in self._spec.model

    @property
    def _model_url(self) -> str:
        parameters = self._spec.parameters
        location = parameters.get("location", "us-central1")
        path = f"projects/{quote(parameters['project'])}/locations/{location}/publishers/google/models/{quote(self._spec.model, safe='@')}"
        return f"{self.base or _host(location)}/{path}"

    @cached_property
    def _identity(self) -> Identity:
        return Identity(self._spec)


def _host(location: str) -> str:
    if location == "global":
        return "https://aiplatform.googleapis.com/v1"
    if location in _MULTI_REGIONS:
        return f"https://aiplatform.{location}.rep.googleapis.com/v1"
    return f"https://{location}-aiplatform.googleapis.com/v1"
