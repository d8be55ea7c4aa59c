"""Where files are kept is checked when a process starts, and an object store is used as it is in production."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.servers.s3_server import ObjectStore

PROJECT = Path(__file__).resolve().parents[2]
needs_boto3 = pytest.mark.skipif(
    find_spec("boto3") is None, reason="boto3 is not installed (requirements/s3.txt), so files cannot be kept in an object store"
)

KEEP = """
import hashlib, json, django; django.setup()
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from config.errors import StoredDamaged
from kb import blobs
from kb.models import Blob

content = bytes(range(256)) * 1000
key = default_storage.save("organization/sha/one", ContentFile(content))
blob = Blob(storage_key=key, sha256=hashlib.sha256(content).digest(), size=len(content))
told = {"key": key, "there": default_storage.exists(key), "read": blobs.read_bytes(blob) == content}
with blobs.local_path(blob) as path:
    told["copied"] = path.read_bytes() == content
told["copy_is_gone"] = not path.exists()
other = default_storage.save("organization/sha/two", ContentFile(b"two"))
default_storage.delete(key)
told["gone"] = not default_storage.exists(key)
try:
    blobs.read_bytes(blob)
except StoredDamaged as error:
    told["missing"] = error.message
print(json.dumps(told))
"""
UNREACHABLE = """
import django; django.setup()
from config.errors import Unavailable
from kb import blobs
from kb.models import Blob
try:
    blobs.read_bytes(Blob(storage_key="a", sha256=b"", size=0))
except Unavailable as error:
    print(error.message)
"""


def in_a_process(code: str, **named: str) -> subprocess.CompletedProcess[str]:
    """A process whose files are in an object store."""
    settings = {"LECTERN_STORAGE": "s3", "LECTERN_S3_BUCKET": "files", "LECTERN_SECRET_KEY": "k" * 40}
    environment = {**os.environ, **settings, "DJANGO_SETTINGS_MODULE": "config.settings", **named}
    return subprocess.run([sys.executable, "-c", code], cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=120)


def access_to(endpoint: str) -> dict[str, str]:
    keys = {"LECTERN_S3_ACCESS_KEY": "access", "LECTERN_S3_SECRET_KEY": "not-a-secret"}
    return {"LECTERN_S3_ENDPOINT": endpoint, "LECTERN_S3_REGION": "eu-central-1", **keys}


@pytest.mark.skipif(find_spec("boto3") is not None, reason="boto3 is installed, so nothing is missing")
def test_an_object_store_without_its_library_is_told_at_the_start():
    ended = in_a_process("import django; django.setup()")
    assert ended.returncode != 0
    assert "needs the package boto3" in ended.stderr


@needs_boto3
def test_files_are_put_found_read_and_deleted_in_an_object_store():
    with ObjectStore() as store:
        ended = in_a_process(KEEP, **access_to(store.endpoint))
    assert ended.returncode == 0, ended.stderr[-2000:]
    told = json.loads(ended.stdout)
    assert told.pop("missing").startswith("A stored file is missing from the storage.")
    assert told == {"key": "organization/sha/one", "there": True, "read": True, "copied": True, "copy_is_gone": True, "gone": True}
    assert store.objects == {"files/organization/sha/two": b"two"}
    assert all(signed for _, _, signed in store.requests)


@needs_boto3
def test_an_object_store_out_of_reach_is_a_sentence():
    ended = in_a_process(UNREACHABLE, **access_to("http://127.0.0.1:1"))
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "A stored file could not be read (Could not connect to the endpoint URL" in ended.stdout
