"""What came with POST /files: the bytes as the whole body, or as a part of a form. Nothing of it is ever held in memory whole."""

import hashlib
import tempfile
from collections.abc import Mapping
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from django.conf import settings
from rest_framework.request import Request

from config.body import parse_json, printable
from config.errors import InvalidInput, TooLarge
from ingestion.services.channel_files import Upload
from kb.channels import load_upload_policy
from kb.models import Document
from kb.schemas.families import SILENCE, bare

FORM = "multipart/form-data"
PART = 256 * 1024
IN_MEMORY = 1024 * 1024
FIELDS = ("title", "channel", "visibility", "file_name", "policy")
MAX_POLICY = 64 * 1024
HEADER = "X-Lectern-{}"
EMPTY = "The file is empty. Send its bytes as the body, or as the part `file` of multipart/form-data."


class Received:
    """The bytes, in a file of this machine until the request ends, and what was said of them; read once, however often it is asked for."""

    def __init__(self, request: Request) -> None:
        self.is_form = bare(request.content_type or "") == FORM
        _refuse_announced(request)
        part = _part_of(request) if self.is_form else None
        if self.is_form:
            _refuse_unknown(request)
        self._said = {name: _said(request, name, is_form=self.is_form) for name in FIELDS}
        self.stream: IO[bytes] = part or _spooled(request)
        self.digest = _digest(self.stream)
        self._part_name = (part.name or "") if part else ""
        self._type = (part.content_type or "") if part else (request.content_type or "")

    @property
    def channel(self) -> str:
        return self._said["channel"]

    def upload(self) -> Upload:
        """`InvalidInput` names what is wrong."""
        name = self._said["file_name"] or self._part_name
        return said_of(
            {**self._said, "title": self._said["title"] or (name if self.is_form else "")}, file_name=name, media_type=self._type
        )

    def fingerprint(self, request: Request) -> bytes:
        """Of everything that makes the request what it is, for its Idempotency-Key; a form's boundary differs each time."""
        state = hashlib.sha256(self.digest)
        state.update(repr((request.META.get("QUERY_STRING", ""), sorted(self._said.items()), self._part_name, self._type)).encode())
        return state.digest()

    def close(self) -> None:
        self.stream.close()


def said_of(fields: Mapping[str, str], *, file_name: str, media_type: str) -> Upload:
    """What fields of text say of a file. `InvalidInput` names what is wrong."""
    visibility = fields.get("visibility") or Document.Visibility.PRIVATE
    if visibility not in Document.Visibility.values:
        raise _wrong("visibility", f"must be one of {', '.join(Document.Visibility.values)}")
    text = fields.get("policy", "")
    if len(text) > MAX_POLICY:
        raise _wrong("policy", f"must have at most {MAX_POLICY:,} characters")
    return Upload(
        title=fields.get("title", ""),
        file_name=file_name,
        media_type=_media_type(media_type),
        visibility=visibility,
        policy=load_upload_policy(_parsed(text)) if text.strip() else {},
    )


def _parsed(policy: str) -> Any:
    try:
        return parse_json(policy.encode())
    except InvalidInput as error:
        message = f'must be JSON, such as {{"mode": "text"}}. {error.message}'.replace("The body", "It")
        raise _wrong("policy", message.removesuffix(".")) from None


def received(request: Request) -> Received:
    """What this request brought."""
    if not hasattr(request, "lectern_received"):
        request.lectern_received = Received(request)
    return request.lectern_received


def let_go(request: Request) -> None:
    """At the end of the request, whatever became of it."""
    if (brought := getattr(request, "lectern_received", None)) is not None:
        brought.close()


def fingerprint(request: Request) -> bytes:
    return received(request).fingerprint(request)


def _refuse_announced(request: Request) -> None:
    length = request.META.get("CONTENT_LENGTH") or ""
    room = settings.MAX_UPLOAD_BYTES + (settings.FORM_ROOM_BYTES if bare(request.content_type or "") == FORM else 0)
    if length.isdigit() and int(length) > room:
        raise _too_large()


def _too_large() -> TooLarge:
    most = settings.MAX_UPLOAD_BYTES
    message = f"The file is larger than {most:,} bytes. Split it, or raise LECTERN_MAX_UPLOAD_BYTES."
    return TooLarge(message, max_bytes=most)


def _spooled(request: Request) -> IO[bytes]:
    """The body, counted while it comes: what was announced is only a claim."""
    stream: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - it outlives this function
    size = 0
    while part := request._request.read(PART):
        size += len(part)
        if size > settings.MAX_UPLOAD_BYTES:
            stream.close()
            raise _too_large()
        stream.write(part)
    if not size:
        stream.close()
        raise InvalidInput(EMPTY)
    return stream


def _digest(stream: IO[bytes]) -> bytes:
    state = hashlib.sha256()
    stream.seek(0)
    while part := stream.read(PART):
        state.update(part)
    stream.seek(0)
    return state.digest()


def _refuse_unknown(request: Request) -> None:
    """A misspelled field would be passed over, and a file that was to be open would be private."""
    unknown = sorted(set(request.POST) - {*FIELDS, "csrfmiddlewaretoken"})
    if unknown:
        errors = [{"path": printable(name)[:100], "message": f"is no field. Fields are {', '.join(FIELDS)}."} for name in unknown[:20]]
        raise InvalidInput(f"`{errors[0]['path']}` {errors[0]['message']}", errors=errors)


def _part_of(request: Request) -> Any:
    parts = [part for name in request.FILES for part in request.FILES.getlist(name)]
    if len(parts) != 1:
        found = "no file" if not parts else f"{len(parts)} files"
        verb = "are" if parts else "is"
        raise InvalidInput(f"There {verb} {found} in the request. Send one, as the part `file`; several come in several requests.")
    if not parts[0].size:
        raise InvalidInput(EMPTY)
    if parts[0].size > settings.MAX_UPLOAD_BYTES:
        raise _too_large()
    return parts[0]


def _said(request: Request, name: str, *, is_form: bool) -> str:
    """A field of the form, else the query, else the header, where it is percent-encoded UTF-8: a header holds no other text safely."""
    if is_form and name in request.POST:
        return request.POST[name]
    if name in request.query_params:
        return request.query_params[name]
    value = request.headers.get(HEADER.format(name.replace("_", "-").title()), "")
    try:
        return unquote_to_bytes(value.encode("latin-1")).decode("utf-8") if value else ""
    except UnicodeError:
        raise _wrong(name, "is not UTF-8 in percent-encoding") from None


def _media_type(declared: str) -> str:
    """As declared, where it is one and says something."""
    plain = bare(declared)
    if plain in SILENCE or not plain.isascii() or not plain.isprintable() or plain.count("/") != 1 or " " in plain:
        return ""
    return plain[:200]


def _wrong(name: str, rule: str) -> InvalidInput:
    message = f"`{name}` {rule}."
    return InvalidInput(message, errors=[{"path": name, "message": message}])
