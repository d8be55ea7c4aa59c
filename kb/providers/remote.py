"""An embeddings endpoint that is spoken to in its vendor's own JSON, through the guarded HTTP client.

A vendor is two functions: what is sent for a batch, and where the vectors stand in the answer. Sending, limits and errors are here.
"""

from __future__ import annotations

import json
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import httpx
import numpy as np

from config.errors import PermanentProviderError, TooLarge
from config.http import Fetched, fetch, open_client, retry_after
from kb.providers.base import BatchLimits, Embedded, ModelSpec, Role
from kb.providers.errors import read_error, redact, status_error, unreadable_answer
from kb.providers.remote_settings import check_remote, limits_of, room_for, sendable, timeout_of


@dataclass(frozen=True, slots=True)
class Call:
    """One request: POST `body` as JSON to `url`. Keys stand in `headers`, never in the address."""

    url: str
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


class RemoteProvider(ABC):
    """Base of the vendors' providers. `default_endpoint` is the vendor's, version included; an endpoint of one's own takes its place."""

    default_endpoint = ""
    defaults = BatchLimits(max_texts=96, max_tokens=100_000)

    def __init__(self, spec: ModelSpec, *, threads: int | None = None) -> None:
        self.check(spec)
        self._spec = spec
        self._timeout = timeout_of(spec)
        self.longest_call = 2 * self._timeout  # some ask for an access token first
        self.limits = limits_of(spec, self.defaults)
        self._client: tuple[int, httpx.Client] | None = None
        self._lock = Lock()

    @classmethod
    def check(cls, spec: ModelSpec) -> None:
        check_remote(spec)

    @abstractmethod
    def make_call(self, texts: Sequence[str], role: Role) -> Call:
        """The request for a batch."""

    @abstractmethod
    def read_answer(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[list[Any], Any]:
        """(vectors in the order of the texts, tokens or None). A shape that is not there may raise KeyError, TypeError and the like."""

    def embed_batch(self, texts: Sequence[str], role: Role) -> Embedded:
        call = self.make_call([sendable(text) for text in texts], role)
        answer = self.post(call.url, json.dumps(call.body).encode(), {"Content-Type": "application/json", **call.headers})
        try:
            body = json.loads(answer.body)
        except (ValueError, RecursionError):
            body = None
        if answer.status >= 300:
            raise self.refusal(answer, body)
        if body is None:
            raise unreadable_answer(self._spec, "its answer is not JSON", transient=not answer.body.strip())
        try:
            vectors, tokens = self.read_answer(body, answer.headers)
            return Embedded(vectors=np.array(vectors, dtype=np.float32), tokens=tokens if type(tokens) is int else 0)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError):
            raise unreadable_answer(self._spec, "there is no list of vectors in its answer") from None

    def refusal(self, answer: Fetched, body: object) -> Exception:
        """The error that an answer of 300 and above stands for."""
        code, detail = read_error(body)
        return status_error(self._spec, answer.status, code=code, detail=detail, retry_after=retry_after(answer.headers))

    def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> Fetched:
        try:
            return fetch(
                self._open(),
                "POST",
                url,
                max_bytes=room_for(self._spec, self.limits),
                deadline=self._timeout,
                headers=headers,
                content=content,
                max_redirects=0,
            )
        except TooLarge as error:
            raise PermanentProviderError(redact(self._spec, error.message)) from None

    @property
    def base(self) -> str:
        return (self._spec.endpoint or self.default_endpoint).rstrip("/")

    def url(self, path: str) -> str:
        """The address of a path below the endpoint; an endpoint that already ends in it is taken as it is."""
        return self.base if self.base.endswith(f"/{path}") else f"{self.base}/{path}"

    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._spec.credential}"} if self._spec.credential else {}

    def dimensions(self, name: str) -> dict[str, int]:
        """The wish for shorter vectors under the vendor's name for it; nothing where none was registered."""
        wanted = self._spec.parameters.get("dimensions")
        return {name: wanted} if wanted else {}

    def close(self) -> None:
        """End the connections that were kept; the next call opens new ones."""
        with self._lock:
            kept, self._client = self._client, None
        if kept is not None and kept[0] == os.getpid():
            kept[1].close()

    def _open(self) -> httpx.Client:
        with self._lock:
            if self._client is None or self._client[0] != os.getpid():  # a connection of the parent is not ours after a fork
                self._client = (os.getpid(), open_client(trusted=self._spec.trusted, timeout=self._timeout))
                weakref.finalize(self, self._client[1].close)  # when the last call that uses it is through
            return self._client[1]


def by_index(items: Sequence[Mapping[str, Any]], vector: str) -> list[Any]:
    """The vectors of items in the order of their `index`; ValueError unless the indexes are 0, 1, 2 …"""
    ordered = sorted(items, key=lambda item: item["index"])
    if [item["index"] for item in ordered] != list(range(len(ordered))):
        raise ValueError("the indexes are not those of the texts sent")
    return [item[vector] for item in ordered]
