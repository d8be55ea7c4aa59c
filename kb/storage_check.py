"""Whether files can be kept: written, read, deleted, and sent by browsers. Each step says what it found."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from os import urandom
from uuid import uuid4

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from config.errors import LecternError
from config.http import fetch, open_client
from config.object_store import faults, is_object_store, presigned_put, words

SIZE = 4096
SECONDS = 30.0
FOLDER = "checks"


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    is_well: bool
    message: str


def check_storage(origin: str) -> Iterator[Step]:
    """The steps in their order, up to the first without which the next says nothing. `origin` is where browsers come from."""
    content, wanted = urandom(SIZE), f"{FOLDER}/{uuid4().hex}"
    try:
        key = default_storage.save(wanted, ContentFile(content))
        yield Step("write", True, f"{SIZE:,} bytes were written.")
        with default_storage.open(key) as stored:
            same = stored.read() == content
        yield Step("read", same, "The same bytes came back." if same else "Other bytes came back than were written.")
        default_storage.delete(key)
        gone = not default_storage.exists(key)
        yield Step("delete", gone, "They are gone." if gone else "They are still there after they were deleted.")
    except faults() as error:
        yield Step("access", False, f"The storage refused: {words(error)}. Check bucket or folder, keys and rights.")
        return
    if is_object_store():
        yield from _browser_steps(origin)


def cors_policy(origin: str) -> str:
    """What the bucket must allow, as `aws s3api put-bucket-cors` takes it."""
    rule = {
        "AllowedOrigins": [origin],
        "AllowedMethods": ["PUT"],
        "AllowedHeaders": ["*"],
        "ExposeHeaders": ["ETag"],
        "MaxAgeSeconds": 3600,
    }
    return json.dumps({"CORSRules": [rule]}, indent=2)


def access_policy(bucket: str) -> str:
    """What our key must be allowed, as a policy of the key's user or role, and no more."""
    objects = {"Effect": "Allow", "Action": ["s3:PutObject", "s3:GetObject", "s3:DeleteObject"], "Resource": f"arn:aws:s3:::{bucket}/*"}
    listing = {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": f"arn:aws:s3:::{bucket}"}
    return json.dumps({"Version": "2012-10-17", "Statement": [objects, listing]}, indent=2)


def _browser_steps(origin: str) -> Iterator[Step]:
    key, content = f"{FOLDER}/{uuid4().hex}", urandom(SIZE)
    endpoint = settings.ENV.s3_public_endpoint
    media_type = "application/octet-stream"
    url, headers = presigned_put(key, size=SIZE, media_type=media_type, expires_in=timedelta(minutes=1), endpoint=endpoint)
    asked = {"Origin": origin, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type"}
    try:
        with open_client(trusted=True, timeout=SECONDS) as client:
            put = fetch(client, "PUT", url, max_bytes=100_000, deadline=SECONDS, headers=headers, content=content)
            well = put.status in (200, 204)
            yield Step("signed address", well, "A signed address takes bytes." if well else f"A signed address answers {put.status}.")
            preflight = fetch(client, "OPTIONS", url, max_bytes=100_000, deadline=SECONDS, headers=asked)
    except LecternError as error:
        yield Step("signed address", False, f"A signed address cannot be reached: {error.message}")
        return
    finally:
        default_storage.delete(key)
    allowed = preflight.headers.get("access-control-allow-origin", "")
    methods = {method.strip().upper() for method in preflight.headers.get("access-control-allow-methods", "").split(",")}
    well = preflight.status < 300 and allowed in ("*", origin) and bool({"PUT", "*"} & methods)
    told = f"status {preflight.status}, origin {allowed or 'none'}, methods {', '.join(sorted(methods - {''})) or 'none'}"
    yield Step(
        "CORS",
        well,
        f"The bucket lets browsers from {origin} send files."
        if well
        else f"Browsers from {origin} cannot send files: {told}. Apply the policy.",
    )
