"""The headers of tus 1.0.0 (https://tus.io/protocols/resumable-upload): core, creation, expiration, termination."""

import base64
import binascii
from collections.abc import Mapping

from django.conf import settings
from django.http import HttpResponse
from django.utils.http import http_date
from rest_framework.request import Request
from rest_framework.response import Response

from config.errors import InvalidInput, LecternError
from kb.models import Upload

VERSION = "1.0.0"
EXTENSIONS = "creation,expiration,termination"
PIECE = "application/offset+octet-stream"
MAX_METADATA = 64 * 1024


class OtherVersion(LecternError):
    code = "tus_version"
    status = 412


def is_spoken(request: Request) -> bool:
    return "Tus-Resumable" in request.headers


def require_version(request: Request) -> None:
    if request.headers.get("Tus-Resumable") != VERSION:
        raise OtherVersion(f"Resumable uploads speak tus {VERSION}. Send the header Tus-Resumable: {VERSION}.")


def number(request: Request, name: str) -> int:
    value = request.headers.get(name, "")
    if not (value.isascii() and value.isdigit() and len(value) < 16):
        raise InvalidInput(f"The header {name} must be a number of bytes.")
    return int(value)


def metadata(request: Request) -> Mapping[str, str]:
    """Upload-Metadata: keys, each with its value in Base64 of UTF-8."""
    value = request.headers.get("Upload-Metadata", "")
    if len(value) > MAX_METADATA:
        raise InvalidInput(f"The header Upload-Metadata has more than {MAX_METADATA:,} characters. Send less.")
    found = {}
    for pair in filter(None, (part.strip() for part in value.split(","))):
        key, _, encoded = pair.partition(" ")
        try:
            found[key] = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            raise InvalidInput(f"Upload-Metadata: the value of `{key[:50]}` is not Base64 of UTF-8.") from None
    return found


def answer(status: int, upload: Upload | None = None, **headers: str) -> Response:
    """Without a body; `headers` with underscores for hyphens."""
    response = Response(status=status)
    for name, value in headers.items():
        response[name.replace("_", "-")] = value
    if upload is not None:
        response["Upload-Offset"] = str(upload.received)
        response["Upload-Expires"] = http_date(upload.expires_at.timestamp())
    return response


def options() -> Response:
    return answer(204, Tus_Version=VERSION, Tus_Extension=EXTENSIONS, Tus_Max_Size=str(settings.ENV.max_upload_bytes))


def stamped(response: HttpResponse) -> HttpResponse:
    """Every answer says what is spoken, those to errors too."""
    response["Tus-Resumable"] = VERSION
    if response.status_code == OtherVersion.status:
        response["Tus-Version"] = VERSION
    return response
