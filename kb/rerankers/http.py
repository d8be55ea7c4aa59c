"""Rerank services by HTTP, in the three dialects that vendors and self-hosted servers speak: Cohere v2, Voyage and Jina."""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from config import pauses
from config.errors import LecternError, PermanentProviderError, TransientProviderError
from config.http import fetch, open_client
from config.http_errors import RETRYABLE, retry_after, shown
from kb.rerankers.base import RerankerSpec, late, sigmoid

_MOST_BYTES = 8 * 1024 * 1024
_LONGEST_PAUSE = 60.0
_LONGEST_DETAIL = 300
# Refusals that speak of their number; statuses alone say too little.
_TOO_MANY = ("too many", "batch size", "number of documents", "maximum number", "at most")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where a vendor's requests and answers differ. `results` names the list of {index, relevance_score}; `passed` the parameters that go
    into the body as they are."""

    endpoint: str
    results: str
    most: str
    most_passages: int
    passed: tuple[str, ...] = ()
    fixed: tuple[tuple[str, Any], ...] = ()


class TooMany(Exception):
    """The server takes fewer passages in one request."""


class HttpReranker:
    dialect: ClassVar[Dialect]

    def __init__(self, spec: RerankerSpec) -> None:
        self._spec = spec
        self._url = f"{(spec.endpoint or self.dialect.endpoint).rstrip('/')}/rerank"
        self._client = open_client(trusted=spec.trusted, timeout=spec.timeout)
        weakref.finalize(self, self._client.close)  # when the last search that uses it is through
        self.most_passages = min(spec.parameters.get("max_documents") or self.dialect.most_passages, self.dialect.most_passages)

    @classmethod
    def check(cls, spec: RerankerSpec) -> None:
        """Its settings are all checked where they are written."""

    def score(self, query: str, passages: Sequence[str], *, seconds: float) -> list[float]:
        end = time.monotonic() + seconds
        if pauses.is_paused(self._account()):
            raise TransientProviderError(f"{self._who()} asked for a pause, which is not over yet.")
        try:
            return self._scores(self._ask(query, passages, seconds), len(passages))
        except TooMany as refusal:
            half = len(passages) // 2
            if not half:
                raise self._permanent(str(refusal)) from None
            self.most_passages = min(self.most_passages, len(passages) - half)
            parts = (passages[:half], passages[half:])
            return [score for part in parts for score in self.score(query, part, seconds=end - time.monotonic())]

    def _ask(self, query: str, passages: Sequence[str], seconds: float) -> Any:
        spec = self._spec
        if seconds <= 0:
            raise late(spec)
        body = {"model": spec.model, "query": query, "documents": list(passages), self.dialect.most: len(passages)}
        body |= dict(self.dialect.fixed) | {name: spec.parameters[name] for name in self.dialect.passed if name in spec.parameters}
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if spec.credential:
            headers["Authorization"] = f"Bearer {spec.credential}"
        started = time.monotonic()
        try:
            content = json.dumps(body).encode("utf-8", "replace")
            answer = fetch(
                self._client, "POST", self._url, max_bytes=_MOST_BYTES, deadline=seconds, headers=headers, content=content, max_redirects=0
            )
        except TransientProviderError:
            if time.monotonic() - started >= 0.95 * seconds:
                raise late(spec) from None
            raise
        try:
            parsed = json.loads(answer.body)
        except (ValueError, RecursionError):
            parsed = None
        if answer.status != 200:
            self._refuse(answer.status, answer.headers, _detail(parsed))
        return parsed

    def _scores(self, answer: Any, expected: int) -> list[float]:
        """By the index of each result, whatever order the server chose; each passage exactly once."""
        results = answer.get(self.dialect.results) if isinstance(answer, dict) else None
        if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
            raise self._permanent(f"does not answer as a rerank service: there is no list of {self.dialect.results}. Check its endpoint.")
        found: dict[int, float] = {}
        for result in results:
            index, score = result.get("index"), result.get("relevance_score")
            if type(index) is not int or not 0 <= index < expected or index in found:
                raise self._permanent(f"was given {expected} passages and scored one that is not among them ({str(index)[:40]}).")
            if isinstance(score, bool) or not isinstance(score, int | float):
                raise self._permanent("gave a score that is no number.")
            found[index] = float(score)
        if len(found) != expected:
            raise self._permanent(f"was given {expected} passages and scored {len(found)}.")
        logits = self._spec.parameters.get("scores") == "logits"
        return [sigmoid(found[index]) if logits else found[index] for index in range(expected)]

    def _refuse(self, status: int, headers: Mapping[str, str], detail: str) -> None:
        said = self._quoted(detail)
        if status in (400, 413, 422) and (status == 413 or any(word in detail.lower() for word in _TOO_MANY)):
            raise TooMany(f"finds the request too large ({status}){said}")
        if status in RETRYABLE or status >= 500:
            wait = retry_after(headers)
            if status == 429:
                pauses.pause(self._account(), min(wait if wait is not None else 1.0, _LONGEST_PAUSE))
            what = "limits the rate of requests" if status == 429 else f"answered {status}"
            raise TransientProviderError(f"{self._who()} {what}{said}", retry_after=wait, upstream_status=status)
        hints = {401: "Correct its secret.", 403: "Correct its secret.", 404: "Check the name of the model and the endpoint."}
        if 300 <= status < 400:
            raise self._permanent(f"answers with a redirect ({status}). Name the final address as the endpoint.", status)
        raise self._permanent(f"rejects the request ({status}){said} {hints.get(status, 'Check its parameters.')}", status)

    def _permanent(self, text: str, status: int | None = None) -> LecternError:
        return PermanentProviderError(f"{self._who()} {text}", **({} if status is None else {"upstream_status": status}))

    def _quoted(self, detail: str) -> str:
        text = " ".join("".join(character if character.isprintable() else " " for character in detail).split())
        if self._spec.credential:
            text = text.replace(self._spec.credential, "[secret]")
        return f" (“{text[:_LONGEST_DETAIL].rstrip('. ')}”)." if text else "."

    def _who(self) -> str:
        return f"The reranker {self._spec.name}" + (f" at {shown(self._spec.endpoint)}" if self._spec.endpoint else "")

    def _account(self) -> str:
        return f"{self._spec.provider}|{self._url}|{self._spec.credential}"


class CohereReranker(HttpReranker):
    dialect = Dialect("https://api.cohere.com/v2", "results", "top_n", 1000, passed=("max_tokens_per_doc",))


class VoyageReranker(HttpReranker):
    dialect = Dialect("https://api.voyageai.com/v1", "data", "top_k", 1000, passed=("truncation",), fixed=(("return_documents", False),))


class JinaReranker(HttpReranker):
    """Also what many self-hosted servers speak; those that answer with logits need `parameters.scores`."""

    dialect = Dialect("https://api.jina.ai/v1", "results", "top_n", 1000, fixed=(("return_documents", False),))


def _detail(parsed: Any) -> str:
    """What a refusal says: `message` of Cohere, `detail` of Voyage and Jina, `error` of others."""
    if not isinstance(parsed, dict):
        return ""
    for name in ("message", "detail", "error"):
        found = parsed.get(name)
        if isinstance(found, dict):
            found = found.get("message")
        if isinstance(found, list):  # a validation error, as FastAPI writes it
            found = next((item.get("msg") for item in found if isinstance(item, dict)), None)
        if isinstance(found, str):
            return found
    return ""
