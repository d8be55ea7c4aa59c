"""One GET of a crawl: guarded, bounded in time and bytes, its redirect not followed."""

import contextlib
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from urllib.parse import urlsplit

import httpcore
from ada_url import join_url

from config.addresses import AddressRefused, AllowedNetwork, Resolver, system_resolver
from config.connections import Connections, Exchange
from config.http_errors import WIRE_ERRORS, map_error, retry_after, shown
from config.unpacking import ACCEPTED, BadEncoding, unpacked

PAGES = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"
# Of the time for the headers: what the whole answer may take.
_WHOLE = 4
_LONGEST_WAIT = 3600.0
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:+-]+)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """Any status is an answer. `headers` have lower-case names; `cut`: the body is longer than `max_bytes`, `body` is what was
    read of it; `charset` is what the Content-Type says; `location` is absolute (what cannot be joined stays as it
    was sent)."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool
    media_type: str
    charset: str
    etag: str
    last_modified: str
    location: str
    retry_after: float | None
    seconds: float


class FetchFailed(Exception):
    """No answer. `reason` is a verdict's code: "unreachable", "address_refused" or "bad_url"."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Fetcher:
    """Safe for threads. `connections` is how many stay open between requests: as many as there are threads. No cookie is kept."""

    def __init__(
        self,
        *,
        user_agent: str,
        timeout_seconds: float,
        allowed: Sequence[AllowedNetwork] | None = None,
        resolver: Resolver = system_resolver,
        verify: ssl.SSLContext | None = None,
        connections: int = 16,
    ) -> None:
        self._connections = Connections(idle=connections, allowed=allowed, resolver=resolver, verify=verify)
        self._timeout = timeout_seconds
        self._agent = user_agent.encode("ascii", "replace")

    def get(
        self, url: str, *, max_bytes: int, etag: str = "", last_modified: str = "", accept: str = PAGES, partial: bool = False
    ) -> Answer:
        """`partial` asks for the first `max_bytes` of a body that announces more (robots.txt); otherwise nothing of it is read."""
        started = time.monotonic()
        target = _target(url)
        headers = self._headers(target, accept=accept, etag=etag, last_modified=last_modified)
        try:
            with self._connections.get(
                target, headers, timeout=self._timeout, deadline=_WHOLE * self._timeout, max_bytes=2 * max_bytes + 1024 * 1024
            ) as exchange:
                received = _by_name(exchange.headers)
                body, cut = _body(exchange, received, max_bytes=max_bytes, partial=partial)
        except AddressRefused as error:
            raise FetchFailed("address_refused", error.message) from error
        except BadEncoding as error:
            raise FetchFailed("unreachable", f"{shown(url)} sends {error}. Correct it at the server.") from error
        except WIRE_ERRORS as error:
            raise FetchFailed("unreachable", map_error(error, url).message) from error
        return _answer(url, exchange.status, received, body, cut=cut, seconds=time.monotonic() - started)

    def close(self) -> None:
        self._connections.close()

    def _headers(self, target: httpcore.URL, *, accept: str, etag: str, last_modified: str) -> list[tuple[bytes, bytes]]:
        headers = [
            (b"Host", _host(target)),
            (b"User-Agent", self._agent),
            (b"Accept", accept.encode("ascii")),
            (b"Accept-Encoding", ACCEPTED.encode("ascii")),
        ]
        for name, value in ((b"If-None-Match", etag), (b"If-Modified-Since", last_modified)):
            if value := value.strip():  # one that was cut to be stored may end in a space, which is not sent
                headers.append((name, value.encode("latin-1", "ignore")))
        return headers


def _target(url: str) -> httpcore.URL:
    """A user and password in the address are left out: nobody gave them to this crawl."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("ascii"), parts.port
        path = (parts.path or "/").encode("ascii") + (b"?" + parts.query.encode("ascii") if parts.query else b"")
    except ValueError as error:
        raise FetchFailed("bad_url", f"{shown(url)} is not an address that can be requested ({error}). Correct the link.") from error
    if parts.scheme not in ("http", "https") or not host or not path.isascii() or re.search(rb"[\x00-\x20\x7f]", host + path):
        raise FetchFailed("bad_url", f"{shown(url)} is not an address that can be requested. Correct the link.")
    return httpcore.URL(scheme=parts.scheme.encode("ascii"), host=host, port=port, target=path)


def _host(target: httpcore.URL) -> bytes:
    host = b"[%s]" % target.host if b":" in target.host else target.host
    default = {b"http": 80, b"https": 443}[target.scheme]
    return host if target.port in (None, default) else b"%s:%d" % (host, target.port)


def _by_name(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    named: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
        named[key] = f"{named[key]}, {text}" if key in named else text
    return named


def _body(exchange: Exchange, headers: Mapping[str, str], *, max_bytes: int, partial: bool) -> tuple[bytes, bool]:
    announced = headers.get("content-length", "")
    encoding = headers.get("content-encoding", "")
    if not partial and not encoding and announced.isdigit() and int(announced[:20]) > max_bytes:
        return b"", True
    body = BytesIO()
    try:
        for piece in unpacked(exchange, encoding) if encoding else exchange:
            body.write(piece)
            if body.tell() > max_bytes:
                body.truncate(max_bytes)
                return body.getvalue(), True
    except (BadEncoding, *WIRE_ERRORS):
        # A status that is no page is said already, whatever comes of the text that explains it.
        if 200 <= exchange.status < 300:
            raise
        return body.getvalue(), True
    return body.getvalue(), False


def _answer(url: str, status: int, headers: Mapping[str, str], body: bytes, *, cut: bool, seconds: float) -> Answer:
    kind = headers.get("content-type", "")
    charset = _CHARSET.search(kind)
    wait = retry_after(headers)
    return Answer(
        url=url,
        status=status,
        headers=headers,
        body=body,
        cut=cut,
        media_type=re.split("[;,]", kind, maxsplit=1)[0].strip().lower(),
        charset=charset[1].lower() if charset else "",
        etag=headers.get("etag", ""),
        last_modified=headers.get("last-modified", ""),
        location=_location(url, headers.get("location", "")),
        retry_after=None if wait is None else min(wait, _LONGEST_WAIT),
        seconds=seconds,
    )


def _location(url: str, value: str) -> str:
    """Header bytes are Latin-1 by the letter and UTF-8 in practice."""
    with contextlib.suppress(UnicodeError):
        value = value.encode("latin-1").decode("utf-8")
    try:
        return join_url(url, value) if value else ""
    except ValueError:
        return value
