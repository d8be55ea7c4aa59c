"""How one request is answered, and the answers that tests want often."""

import gzip
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import brotli

try:
    from compression import zstd  # Python 3.14
except ImportError:
    from backports import zstd

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """A `body` of text is encoded as `charset`; `content_type` is sent as it is written ("" sends none), true or not.

    `etag`: "auto" (of the body), "rotating" (another one with each body; only the last one is confirmed) or literal; with it, or
    with `last_modified` (an HTTP date), conditional requests get a real 304. `encoding` packs the body and says so; `packed` says
    so of a body that is packed already. `headers` come last and replace what would be sent; a list sends a header several times."""

    status: int = 200
    body: str | bytes = b""
    content_type: str = HTML
    charset: str = "utf-8"
    headers: Mapping[str, str | list[str]] = field(default_factory=dict)
    etag: str = ""
    last_modified: str = ""
    encoding: Literal["", "gzip", "deflate", "br", "zstd"] = ""
    packed: str = ""
    delay: float = 0.0  # before the first byte
    head_pause: float = 0.0  # after each byte of status line and headers
    piece: int = 0  # the body comes in pieces of so many bytes,
    pause: float = 0.0  # with so long a pause between them
    cut_at: int | None = None  # the connection ends after so many bytes of a body whose length was announced in full
    chunked: bool = False
    endless: bool = False  # the body again and again, until the client leaves
    drop: bool = False  # the connection ends without an answer

    @property
    def raw(self) -> bytes:
        return self.body.encode(self.charset) if isinstance(self.body, str) else self.body

    @property
    def sent(self) -> bytes:
        return pack(self.raw, self.encoding) if self.encoding else self.raw

    @property
    def digest(self) -> str:
        return f'"{hashlib.sha256(self.raw).hexdigest()[:16]}"'


def pack(body: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.compress(body, mtime=0)
    if encoding == "deflate":
        return zlib.compress(body)
    if encoding == "br":
        return brotli.compress(body, quality=5)
    if encoding == "zstd":
        return zstd.compress(body)
    raise ValueError(f"no encoding {encoding!r}")


@cache
def _packed_nothing(encoding: str, size: int) -> bytes:
    return pack(b"<p>" + b" " * size, encoding)


def bomb(encoding: str = "gzip", *, size: int = 64 * 1024 * 1024) -> Answer:
    """A small body that unpacks to `size` bytes."""
    return Answer(body=_packed_nothing(encoding, size), packed=encoding)


def redirect(to: str, status: int = 302) -> Answer:
    """`to` is sent as it is written: relative, to another host, to a private address, to a scheme that nobody speaks."""
    return Answer(status=status, headers={"Location": to})


def refusal(status: int, *, retry_after: float | str | None = None) -> Answer:
    """401, 403, 404, 410, 429, 5xx with the short page that servers send."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    if status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="members"'
    title = {401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 410: "Gone", 429: "Too Many Requests"}.get(
        status, "Service Unavailable"
    )
    text = f"<html><head><title>{status} {title}</title></head><body><h1>{title}</h1><hr>nginx</body></html>"
    return Answer(status=status, body=text, headers=headers)


def maintenance(status: int = 200) -> Answer:
    """What stands in front of a whole site while somebody works on it: one page, 200 for every address, robots.txt included."""
    text = (
        "<!doctype html><html lang=en><head><title>Down for maintenance</title></head><body><main><h1>We will be back soon</h1>"
        "<p>Our site is being serviced at the moment. We are sorry for the inconvenience; please come back in a little while.</p>"
        "</main></body></html>"
    )
    return Answer(status=status, body=text, headers={"Cache-Control": "no-store"})
