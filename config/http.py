"""The one outbound HTTP client: addresses checked and pinned, bodies capped while they stream, a wall deadline over everything."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import httpx

from config.addresses import AddressRefused, AllowedNetwork, Guard, Resolver, system_resolver
from config.env import environment
from config.errors import PermanentProviderError, TooLarge
from config.http_errors import map_error, mapped, retry_after, shown, status_error
from config.unpacking import BadEncoding, unpacked
from config.version import VERSION
from config.wire import GuardedTransport, wall_deadline

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "AddressRefused",
    "Fetched",
    "async_client",
    "fetch",
    "map_error",
    "mapped",
    "open_client",
    "retry_after",
    "status_error",
    "user_agent",
    "wall_deadline",
]

# What a redirect to another origin may carry on: a key in a header is for the host that it was given for.
_HARMLESS = frozenset({"accept", "accept-encoding", "accept-language", "cache-control", "connection", "host", "user-agent"}) | frozenset(
    {"content-length", "content-type", "if-modified-since", "if-none-match", "range", "transfer-encoding"}
)


@dataclass(frozen=True, slots=True)
class Fetched:
    """`url` is where the answer came from; `redirects` the addresses that led there, the first one first."""

    status: int
    headers: httpx.Headers
    body: bytes
    url: str
    redirects: tuple[str, ...] = ()


def user_agent() -> str:
    return f"Lectern/{VERSION} (+{environment().public_url})"


def open_client(
    *,
    trusted: bool = False,
    timeout: float = 30.0,
    headers: Mapping[str, str] | None = None,
    allowed: Sequence[AllowedNetwork] | None = None,
    resolver: Resolver = system_resolver,
    verify: ssl.SSLContext | None = None,
) -> httpx.Client:
    """`trusted` is for endpoints that an operator set: any address, still resolved once and pinned. Redirects are not followed by
    the client itself, `fetch` follows them. No proxy of the environment is used: it would do the resolving."""
    guard = guard_for(trusted=trusted, allowed=allowed, resolver=resolver)
    return httpx.Client(transport=GuardedTransport(guard, verify or certificates()), **_settings(timeout, headers))


def async_client(
    *,
    trusted: bool = False,
    timeout: float = 30.0,
    headers: Mapping[str, str] | None = None,
    allowed: Sequence[AllowedNetwork] | None = None,
    resolver: Resolver = system_resolver,
    verify: ssl.SSLContext | None = None,
    max_bytes: int | None = None,
) -> "httpx2.AsyncClient":
    """The same for asyncio, as the httpx2 client that pydantic-ai and openai take. A refused address is AddressRefused here too;
    other failures are httpx2's (`mapped` knows them). A body above `max_bytes` is PermanentProviderError while it comes."""
    import httpx2

    from config.wire_async import AsyncGuardedTransport

    guard = guard_for(trusted=trusted, allowed=allowed, resolver=resolver)
    asked = dict(headers or {}) | ({"Accept-Encoding": "identity"} if max_bytes is not None else {})
    settings = _settings(timeout, asked) | {"timeout": httpx2.Timeout(timeout, connect=min(timeout, 10.0))}
    return httpx2.AsyncClient(transport=AsyncGuardedTransport(guard, verify or certificates(), max_bytes=max_bytes), **settings)


def fetch(
    client: httpx.Client,
    method: str,
    url: str,
    *,
    max_bytes: int,
    deadline: float,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    max_redirects: int = 10,
) -> Fetched:
    """One request, its redirects and its whole body within `deadline` seconds and `max_bytes` decoded bytes.

    Any status is an answer. TooLarge, AddressRefused, InvalidInput (no URL) and ProviderError (transient or not) are raised;
    nothing of httpx leaves here."""
    hops: list[str] = []
    with mapped(url), wall_deadline(deadline):
        request = client.build_request(method, url, headers=dict(headers or {}), content=content)
        while True:
            response = client.send(request, stream=True, follow_redirects=False)
            try:
                following = response.next_request
                if following is None or max_redirects == 0:
                    return Fetched(response.status_code, response.headers, _read(response, max_bytes), str(response.url), tuple(hops))
            finally:
                response.close()
            hops.append(str(request.url))
            if len(hops) > max_redirects:
                raise PermanentProviderError(f"{shown(url)} redirects more than {max_redirects} times. Give the final address.")
            request = _without_keys(following, origin=request.url)


def guard_for(*, trusted: bool, allowed: Sequence[AllowedNetwork] | None, resolver: Resolver) -> Guard:
    networks = environment().allowed_private_networks if allowed is None else tuple(allowed)
    return Guard(allowed=networks, trusted=trusted, resolver=resolver)


def _settings(timeout: float, headers: Mapping[str, str] | None) -> dict[str, Any]:
    # The clients' own decoders unpack each chunk whole; only `fetch` bounds what comes out.
    merged = httpx.Headers({"User-Agent": user_agent(), "Accept-Encoding": "gzip, deflate"})
    merged.update(dict(headers or {}))
    return {
        "timeout": httpx.Timeout(timeout, connect=min(timeout, 10.0)),
        "headers": dict(merged),
        "trust_env": False,
        "follow_redirects": False,
    }


@cache
def certificates(*, http2: bool = False) -> ssl.SSLContext:
    """Loaded once a process (it costs tens of milliseconds); SSL_CERT_FILE and SSL_CERT_DIR name an authority of one's own. Apart
    for HTTP/2, because a context keeps the protocols that the last connection offered."""
    return httpx.create_ssl_context(trust_env=True)


def _without_keys(request: httpx.Request, *, origin: httpx.URL) -> httpx.Request:
    same = (request.url.scheme, request.url.host, request.url.port) == (origin.scheme, origin.host, origin.port)
    if not same:
        for name in [name for name in request.headers if name not in _HARMLESS]:
            del request.headers[name]
    return request


def _read(response: httpx.Response, max_bytes: int) -> bytes:
    announced = response.headers.get("content-length", "")
    encoded = response.headers.get("content-encoding", "identity").strip().lower()
    body = bytearray()
    if response.request.method == "HEAD":
        return b""
    if encoded in ("", "identity") and announced.isdigit() and int(announced) > max_bytes:
        raise _too_large(response.url, max_bytes)
    try:
        for piece in unpacked(response.iter_raw(), encoded):
            if len(body) + len(piece) > max_bytes:
                raise _too_large(response.url, max_bytes)
            body += piece
    except BadEncoding as error:
        raise PermanentProviderError(f"{shown(response.url)} sends {error}.") from error
    return bytes(body)


def _too_large(url: httpx.URL, max_bytes: int) -> TooLarge:
    return TooLarge(f"{shown(url)} is larger than {max_bytes:,} bytes. Give a smaller file, or raise the limit.", max_bytes=max_bytes)
