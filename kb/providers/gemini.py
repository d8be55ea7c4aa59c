"""The `gemini` provider: batchEmbedContents of the Gemini API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from config.http import Fetched
from config.http_errors import retry_after
from kb.providers.base import BatchLimits, ModelSpec, Role
from kb.providers.errors import read_error, status_error
from kb.providers.google_tasks import check_task, prompted, task_type
from kb.providers.remote import Call, RemoteProvider


class GeminiProvider(RemoteProvider):
    default_endpoint = "https://generativelanguage.googleapis.com/v1beta"
    defaults = BatchLimits(max_texts=100, max_tokens=20_000)

    @classmethod
    def check(cls, spec: ModelSpec) -> None:
        super().check(spec)
        check_task(spec)

    def make_call(self, texts: Sequence[str], role: Role) -> Call:
        model = f"models/{self._spec.model.removeprefix('models/')}"
        task = task_type(self._spec, role)
        same = {"model": model, **({"taskType": task} if task else {}), **self.dimensions("outputDimensionality")}
        requests = [{**same, "content": {"parts": [{"text": prompted(self._spec, text, role)}]}} for text in texts]
        headers = {"x-goog-api-key": self._spec.credential} if self._spec.credential else {}
        return Call(f"{self.base}/{quote(model)}:batchEmbedContents", {"requests": requests}, headers)

    def read_answer(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[list[Any], Any]:
        return [item["values"] for item in body["embeddings"]], (body.get("usageMetadata") or {}).get("promptTokenCount")

    def refusal(self, answer: Fetched, body: object) -> Exception:
        return google_refusal(self._spec, answer, body)


def google_refusal(spec: ModelSpec, answer: Fetched, body: object) -> Exception:
    """Google says how long to wait in the body, and of a key that is none that the request is wrong (400)."""
    code, detail = read_error(body)
    details = _details(body)
    status = 401 if any(entry.get("reason") == "API_KEY_INVALID" for entry in details) else answer.status
    delays = [str(entry["retryDelay"]).removesuffix("s") for entry in details if "retryDelay" in entry]
    wait = retry_after(answer.headers) or retry_after({"retry-after": delays[0]} if delays else {})
    return status_error(spec, status, code=code, detail=detail, retry_after=wait)


def _details(body: object) -> list[dict[str, Any]]:
    error = body.get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    return [entry for entry in details if isinstance(entry, dict)] if isinstance(details, list) else []
