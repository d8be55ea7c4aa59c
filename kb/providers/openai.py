"""The `openai` provider: any server with an OpenAI-shaped /embeddings, through pydantic-ai's Embedder.

The library keeps the server's order of answers and retries by itself; here the answer's own index decides, and nobody retries but the
work queue, which knows what was paid.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import Any

import httpx2
import numpy as np
from openai import APIStatusError, AsyncOpenAI, Omit
from openai.resources.embeddings import AsyncEmbeddings
from openai.types import CreateEmbeddingResponse
from pydantic_ai import Embedder
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError, ModelHTTPError
from pydantic_ai.providers.openai import OpenAIProvider as Connection

from config.http import async_client, user_agent
from config.http_errors import retry_after
from kb.providers.base import BatchLimits, Embedded, ModelSpec, Role
from kb.providers.errors import connection_error, read_error, status_error, timeout_error, unreadable_answer
from kb.providers.loop import close_with, run_blocking
from kb.providers.remote_settings import check_remote, limits_of, room_for, sendable, timeout_of


class UnreadableAnswer(Exception):
    """A 200 that is no list of embeddings for what was sent."""


class OpenAIProvider:
    default_endpoint = "https://api.openai.com/v1"
    defaults = BatchLimits(max_texts=96, max_tokens=100_000)  # 400,000 characters

    def __init__(
        self, spec: ModelSpec, *, threads: int | None = None, open_client: Callable[..., httpx2.AsyncClient] = async_client
    ) -> None:
        self.check(spec)
        self._spec = spec
        self._open_client = open_client
        self._timeout = timeout_of(spec)
        self.longest_call = 2 * self._timeout
        self._client: tuple[int, AsyncOpenAI] | None = None
        self._lock = Lock()
        self.limits = limits_of(spec, self.defaults)

    @classmethod
    def check(cls, spec: ModelSpec) -> None:
        check_remote(spec)

    def embed_batch(self, texts: Sequence[str], role: Role) -> Embedded:
        inputs = [sendable(text) for text in texts]
        try:
            # A stalled body would outlive the client's own limit, which is per read.
            result = run_blocking(self._call(inputs, role), deadline=self.longest_call)
            vectors = np.array(result.embeddings, dtype=np.float32)
        except (UnreadableAnswer, ValueError) as error:
            raise unreadable_answer(self._spec, str(error)) from None
        except TimeoutError:
            raise timeout_error(self._spec) from None
        except APIStatusError as error:  # a redirect, which pydantic-ai leaves as it is
            raise status_error(self._spec, error.status_code) from None
        except ModelAPIError as error:
            raise _map_error(self._spec, error) from None  # the library's error holds the request, and so the key
        return Embedded(vectors=vectors, tokens=result.usage.input_tokens)

    async def _call(self, inputs: list[str], role: Role) -> Any:
        settings: Any = self._settings()
        if not self._spec.credential:
            settings["extra_headers"] = {"Authorization": Omit()}
        return await self._open_embedder().embed(inputs, input_type=role.value, settings=settings)

    def _settings(self) -> dict[str, Any]:
        """What the request says besides texts and model, as pydantic-ai takes it."""
        return {name: self._spec.parameters[name] for name in ("dimensions",) if name in self._spec.parameters}

    @property
    def _model_name(self) -> str:
        return self._spec.model

    def close(self) -> None:
        """End the connections that were kept; the next call opens new ones."""
        with self._lock:
            kept, self._client = self._client, None
        if kept is not None and kept[0] == os.getpid():
            run_blocking(kept[1].close(), deadline=5)

    def _open_embedder(self) -> Embedder:
        with self._lock:
            # Connections belong to the loop that opened them, and a fork starts another one.
            if self._client is None or self._client[0] != os.getpid():
                self._client = (os.getpid(), self._make_client())
                close_with(self, self._client[1].close)
            client = self._client[1]
        return Embedder(OpenAIEmbeddingModel(self._model_name, provider=Connection(openai_client=client)))

    def _make_client(self) -> AsyncOpenAI:
        return IndexedClient(base_url=self._spec.endpoint or self.default_endpoint, **self._connection())

    def _connection(self) -> dict[str, Any]:
        """Of a client of the library. It falls back on OPENAI_* of the environment where a value is missing; those are not this model's."""
        spec = self._spec
        return {
            "api_key": spec.credential or "none",  # never sent, see _call
            "default_headers": {"User-Agent": user_agent(), "OpenAI-Organization": Omit(), "OpenAI-Project": Omit()},
            "http_client": self._open_client(trusted=spec.trusted, timeout=self._timeout, max_bytes=room_for(spec, self.limits)),
            "timeout": self._timeout,
            "max_retries": 0,
        }


class IndexedClient(AsyncOpenAI):
    @cached_property
    def embeddings(self) -> AsyncEmbeddings:
        return _IndexedEmbeddings(self)


class _IndexedEmbeddings(AsyncEmbeddings):
    """Answers by their index, whatever order the server chose."""

    async def create(self, **request: Any) -> CreateEmbeddingResponse:
        try:
            response = await super().create(**request)
        except (AttributeError, TypeError, RecursionError):  # the library takes a page of HTML and any JSON for its own type
            raise UnreadableAnswer("it is something else than a list of vectors") from None
        items = getattr(response, "data", None)
        if not isinstance(items, list) or not all(isinstance(getattr(item, "embedding", None), list) for item in items):
            raise UnreadableAnswer("there is no list of vectors in its answer")
        indexes = [getattr(item, "index", None) for item in items]
        if any(index is not None for index in indexes):  # some servers leave it out, and keep the order
            if sorted(indexes, key=str) != sorted(range(len(items)), key=str):
                raise UnreadableAnswer("the indexes of its vectors are not those of the texts sent")
            items.sort(key=lambda item: item.index)
        return response


def _map_error(spec: ModelSpec, error: ModelAPIError) -> Exception:
    if isinstance(error, ModelHTTPError):
        return status_error(
            spec,
            error.status_code,
            code=error.provider_error_code or error.provider_error_type,
            detail=read_error(error.body)[1],
            retry_after=retry_after(error.headers or {}),
        )
    if isinstance(error, ModelConnectionError):
        return connection_error(spec, error)
    return unreadable_answer(spec, "its answer is not JSON", transient=True)
