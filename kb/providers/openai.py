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

from config.errors import InvalidInput
from config.http import async_client, user_agent
from config.http_errors import retry_after
from kb.providers.base import BatchLimits, Embedded, ModelSpec, Role, check_settings
from kb.providers.errors import connection_error, status_error, timeout_error, unreadable_answer
from kb.providers.loop import run_blocking

DEFAULT_ENDPOINT = "https://api.openai.com/v1"
_PARAMETERS = frozenset({"batch_texts", "batch_tokens", "dimensions", "timeout", "tokenizer"})
_DEFAULT_TEXTS = 96
_DEFAULT_TOKENS = 100_000  # 400,000 characters
_DEFAULT_TIMEOUT = 60
_LONGEST_TIMEOUT = 600  # a server that never answers holds a worker that others need too
_MOST_TOKENS = 2**40
# A number of a vector takes about 22 bytes of JSON; a model of another dimension shall still be told so.
_LEAST_ROOM = 32 * 1024 * 1024
_BYTES_PER_NUMBER = 32
_MOST_ROOM = 256 * 1024 * 1024


class UnreadableAnswer(Exception):
    """A 200 that is no list of embeddings for what was sent."""


class OpenAIProvider:
    def __init__(
        self, spec: ModelSpec, *, threads: int | None = None, open_client: Callable[..., httpx2.AsyncClient] = async_client
    ) -> None:
        self.check(spec)
        self._spec = spec
        self._open_client = open_client
        self._timeout = float(spec.parameters.get("timeout", _DEFAULT_TIMEOUT))
        self.longest_call = 2 * self._timeout
        self._client: tuple[int, AsyncOpenAI] | None = None
        self._lock = Lock()
        self.limits = BatchLimits(
            max_texts=spec.parameters.get("batch_texts", _DEFAULT_TEXTS), max_tokens=spec.parameters.get("batch_tokens", _DEFAULT_TOKENS)
        )

    @classmethod
    def check(cls, spec: ModelSpec) -> None:
        check_settings(spec, parameters=_PARAMETERS, remote=True)
        for name in ("batch_texts", "batch_tokens", "dimensions", "timeout"):
            value = spec.parameters.get(name, 1)
            if isinstance(value, bool) or not isinstance(value, int | float if name == "timeout" else int) or value <= 0:
                raise InvalidInput(f"The parameter {name} of the model {spec.name} is {value!r}. Give a number above 0.")
        if spec.parameters.get("timeout", 1) > _LONGEST_TIMEOUT:
            raise InvalidInput(
                f"The parameter timeout of the model {spec.name} is above {_LONGEST_TIMEOUT} seconds. Give a smaller number."
            )
        dimensions = spec.parameters.get("dimensions", spec.dimension)
        if dimensions != spec.dimension:
            raise InvalidInput(
                f"The model {spec.name} has dimension {spec.dimension} and parameters.dimensions {dimensions}. Make them equal."
            )
        if spec.endpoint and not spec.endpoint.lower().startswith(("http://", "https://")):
            raise InvalidInput(f"The endpoint of the model {spec.name} is no http or https address. Give one like {DEFAULT_ENDPOINT}.")

    def embed_batch(self, texts: Sequence[str], role: Role) -> Embedded:
        inputs = [_sendable(text) for text in texts]
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
        return Embedded(vectors=vectors, tokens=min(max(0, result.usage.input_tokens), _MOST_TOKENS))

    async def _call(self, inputs: list[str], role: Role) -> Any:
        settings: Any = {name: self._spec.parameters[name] for name in ("dimensions",) if name in self._spec.parameters}
        if not self._spec.credential:
            settings["extra_headers"] = {"Authorization": Omit()}
        return await self._open_embedder().embed(inputs, input_type=role.value, settings=settings)

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
            client = self._client[1]
        return Embedder(OpenAIEmbeddingModel(self._spec.model, provider=Connection(openai_client=client)))

    def _make_client(self) -> AsyncOpenAI:
        spec = self._spec
        # The library falls back on OPENAI_* of the environment where a value is missing; those are not this model's.
        return _IndexedClient(
            base_url=spec.endpoint or DEFAULT_ENDPOINT,
            api_key=spec.credential or "none",  # never sent, see _call
            default_headers={"User-Agent": user_agent(), "OpenAI-Organization": Omit(), "OpenAI-Project": Omit()},
            http_client=self._open_client(trusted=spec.trusted, timeout=self._timeout, max_bytes=self._room()),
            timeout=self._timeout,
            max_retries=0,
        )

    def _room(self) -> int:
        return min(_MOST_ROOM, max(_LEAST_ROOM, self.limits.max_texts * self._spec.dimension * _BYTES_PER_NUMBER))


class _IndexedClient(AsyncOpenAI):
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


def _sendable(text: str) -> str:
    """A lone surrogate cannot be sent, and an empty text is refused by many servers."""
    return text.encode("utf-8", "replace").decode("utf-8") or " "


def _map_error(spec: ModelSpec, error: ModelAPIError) -> Exception:
    if isinstance(error, ModelHTTPError):
        return status_error(
            spec,
            error.status_code,
            code=error.provider_error_code or error.provider_error_type,
            detail=_read_detail(error.body),
            retry_after=retry_after(error.headers or {}),
        )
    if isinstance(error, ModelConnectionError):
        return connection_error(spec, error)
    return unreadable_answer(spec, "its answer is not JSON", transient=True)


def _read_detail(body: object) -> str:
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, dict) else inner
        return message if isinstance(message, str) else ""
    return body if isinstance(body, str) else ""
