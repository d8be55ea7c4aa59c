"""A store's HTTP interface through the one outbound client: addresses checked, answers bounded, failures told as a store's."""

import json
import math
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from config.errors import InvalidInput, LecternError, ProviderError, TooLarge
from config.http import fetch, open_client, status_error
from config.http_errors import shown
from kb.stores.base import SEARCH_DEADLINE, WRITE_DEADLINE, StoreError, StoreRefused, StoreSpec, StoreUnavailable

T = TypeVar("T")
MAX_ANSWER = 32 * 2**20
_DETAIL_CHARS = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` is what the JSON said; None for an empty one."""

    status: int
    body: Any


@dataclass
class RestStore:
    """One server. `name` begins every message ("The store qdrant"). Connections are kept and shared between threads."""

    name: str
    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # Whoever edits a knowledge base names its server: never trusted, so a private one needs the operator's permission.
        self._client = open_client(timeout=WRITE_DEADLINE, headers={"Content-Type": "application/json", **self.headers})
        weakref.finalize(self, self._client.close)  # when the last call that uses it is through

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        writes: bool = False,
        expected: Collection[int] = (),
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request, `path` starting with a slash. A status of `expected` is an answer like any below 400; every other one is raised."""
        url = f"{self.base_url}{path}"
        sent = content if content is not None else None if body is None else json.dumps(body, allow_nan=False).encode()
        try:
            found = fetch(
                self._client,
                method,
                url,
                max_bytes=MAX_ANSWER,
                deadline=WRITE_DEADLINE if writes else SEARCH_DEADLINE,
                content=sent,
                headers=headers,
                max_redirects=0,
            )
        except (ProviderError, TooLarge, InvalidInput) as error:
            raise self._failure(error) from error
        if 300 <= found.status < 400:
            raise StoreRefused(f"{self.name} at {shown(url)} redirects. Give the address that it answers at.")
        if found.status >= 400 and found.status not in expected:
            raise self._refusal(url, found.status, found.headers, found.body)
        return Answer(found.status, self._read(url, found.body))

    def unreadable(self, why: str) -> StoreRefused:
        """For an answer that is JSON and still not what this store's interface says."""
        return StoreRefused(
            f"{self.name} at {shown(self.base_url)} answered in a way that cannot be read: {why}. Check its address and version."
        )

    def absent(self, collection: str) -> StoreRefused:
        return StoreRefused(
            f"{self.name} at {shown(self.base_url)} has no collection '{collection}' (any more). Restore it, or purge the knowledge base "
            "and ingest it again."
        )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside, an answer of another shape leaves as an error of the store."""
        try:
            yield
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise self.unreadable(f"{type(error).__name__}: {error}"[:200]) from error

    def _read(self, url: str, body: bytes) -> Any:
        if not body.strip():
            return None
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self.unreadable(f"{shown(url)} is no JSON") from None

    def _failure(self, error: LecternError) -> StoreError:
        kind = StoreUnavailable if error.transient else StoreRefused
        return kind(f"{self.name} failed: {error.message}")

    def _refusal(self, url: str, status: int, headers: httpx.Headers, body: bytes) -> StoreError:
        error = status_error(status, headers, what=f"{self.name} at {shown(url)}")
        kind = StoreUnavailable if error.transient else StoreRefused
        said = self._redacted(body.decode("utf-8", "replace"))[:_DETAIL_CHARS].strip()
        return kind(f"{error.message} It said: {said}" if said and said[0] in "{[" else error.message, upstream_status=status)

    def _redacted(self, text: str) -> str:
        for value in self.headers.values():
            for part in value.split():
                text = text.replace(part, "[secret]") if len(part) >= 4 and part not in ("Bearer", "Basic", "ApiKey") else text
        return text


def server_url(spec: StoreSpec, *, default_port: int) -> str:
    """Of a store that is configured by `host`, `port` and `use_tls`."""
    host = spec.text("host")
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{'https' if spec.parameters.get('use_tls') else 'http'}://{host}:{spec.text('port', str(default_port))}"


def matches_of(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[int, float]]:
    """(chunk, cosine) as a store wrote them, best first and ties by id; what is no number has no direction."""
    rows = [(int(chunk), float(cosine)) for chunk, cosine in pairs]
    return sorted((row for row in rows if math.isfinite(row[1])), key=lambda row: (-row[1], row[0]))


def batches(values: Collection[T], size: int) -> Iterator[list[T]]:
    listed = list(values)
    for start in range(0, len(listed), size):
        yield listed[start : start + size]
