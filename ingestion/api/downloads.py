"""Stored bytes as an answer: always as a download that can do nothing in a browser, part by part, checked on the way."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header
from rest_framework.request import Request

from kb import blobs
from kb.models import Blob


def download(request: Request, blob: Blob, *, name: str, media_type: str) -> StreamingHttpResponse:
    """A page of a stranger must never run here. Raises what `blobs.read_bytes` raises where the first part shows it; damage found on
    the way ends the answer before its announced length, which no client takes for the file."""
    parts = blobs.read_parts(blob)
    first = next(parts, b"")
    rest = _asynchronous(first, parts) if isinstance(request._request, ASGIRequest) else _plain(first, parts)
    response = StreamingHttpResponse(rest, content_type=media_type or "application/octet-stream")
    response["Content-Length"] = str(blob.size)
    response["Content-Disposition"] = content_disposition_header(True, name)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["Cache-Control"] = "private, no-store"
    return response


def _plain(first: bytes, parts: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from parts


async def _asynchronous(first: bytes, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The web server would hold a plain iterator in memory whole."""
    yield first
    while part := await sync_to_async(next)(parts, b""):
        yield part
