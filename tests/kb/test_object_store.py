"""Files in a bucket of a real S3 server on loopback: blobs, signed addresses, resumable uploads, and the look at the storage itself."""

import hashlib
import json
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO, StringIO
from types import SimpleNamespace

import httpx
import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.utils import timezone

from config.errors import ChecksumMismatch, Conflict, StoredDamaged, TooLarge, Unavailable
from config.object_store import s3_storage
from kb import blobs, uploads
from kb.access import actor_for_user
from kb.drift import find_drift
from kb.models import Blob, File, Upload

pytest.importorskip("boto3", reason="boto3 is not installed (requirements/s3.txt)")
pytest.importorskip("moto", reason="moto is not installed (requirements/dev.txt)")
pytestmark = pytest.mark.django_db
NOTE = b"Thirty days of leave in the first year.\n" * 100


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3, settings) -> Iterator[object]:
    """An empty bucket, and the storage that keeps files in it."""
    given = SimpleNamespace(s3_bucket="files", s3_endpoint=s3, s3_region="eu-central-1", s3_access_key="a", s3_secret_key="b")
    settings.STORAGES = {**settings.STORAGES, "default": s3_storage(given)}
    made = default_storage.bucket
    made.create(CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    yield made
    made.objects.all().delete()
    made.delete()


@pytest.fixture
def announce(alice, organization):
    def _announce(content: bytes = NOTE, **more: object) -> Upload:
        said = {"target": "source", "details": {}, "file_name": "a.txt", "size": len(content), "sha256": hashlib.sha256(content).digest()}
        return uploads.begin(actor_for_user(alice), **{**said, **more})

    return _announce


def keys(bucket) -> list[str]:
    return sorted(found.key for found in bucket.objects.all())


def test_blobs_are_kept_checked_and_collected(bucket, organization):
    blob = blobs.store_stream(organization.id, BytesIO(NOTE))
    assert blobs.store_bytes(organization.id, NOTE).id == blob.id
    assert (keys(bucket), blobs.read_bytes(blob)) == ([blob.storage_key], NOTE)
    with blobs.local_path(blob) as path:
        assert path.read_bytes() == NOTE
    assert not path.exists()
    bucket.put_object(Key=blob.storage_key, Body=b"other")
    with pytest.raises(StoredDamaged, match="does not match"), blobs.local_path(blob):
        pass
    assert (blobs.is_there(blob), blobs.is_whole(blob)) == (False, False)
    Blob.objects.update(touched_at=timezone.now() - timedelta(hours=25))
    assert (blobs.collect(), keys(bucket)) == (1, [])
    with pytest.raises(StoredDamaged, match="missing"):
        blobs.read_bytes(blob)


def test_a_signed_address_of_the_bucket_takes_the_file(bucket, announce):
    upload = announce(media_type="text/plain")
    signed = uploads.signed_url(upload, route="unused")
    assert signed.url.startswith(default_storage.endpoint_url)
    assert "X-Amz-Signature" in signed.url
    assert "content-length" in signed.url
    with pytest.raises(Conflict, match="Nothing has come"), uploads.taken_over(upload):
        pass
    assert httpx.put(signed.url, content=NOTE, headers=dict(signed.headers)).status_code == 200
    with uploads.taken_over(upload) as blob:
        assert blobs.read_bytes(blob) == NOTE
    assert keys(bucket) == [blob.storage_key]
    with pytest.raises(Conflict, match="over"), uploads.taken_over(upload):
        pass
    # The address still works for the store; what it brings is nobody's, and goes.
    httpx.put(signed.url, content=NOTE, headers=dict(signed.headers))
    assert len(keys(bucket)) == 2
    Upload.objects.update(expires_at=timezone.now() - timedelta(hours=2))
    assert (uploads.collect(), keys(bucket)) == (1, [blob.storage_key])


@pytest.mark.parametrize(("content", "error"), [(NOTE[:-1] + b"!", ChecksumMismatch), (NOTE + b"!", TooLarge)], ids=["other", "more"])
def test_what_the_store_let_in_is_checked_all_the_same(bucket, announce, content, error):
    """The server of this test does not look at signatures, as a careless one would not."""
    upload = announce()
    signed = uploads.signed_url(upload, route="unused")
    httpx.put(signed.url, content=content, headers=dict(signed.headers))
    with pytest.raises(error), uploads.taken_over(upload):
        pass
    assert (keys(bucket), Blob.objects.count()) == ([], 0)


def test_a_resumable_upload_lies_in_the_bucket_piece_by_piece(bucket, announce):
    upload = announce(is_resumable=True)
    for start in range(0, len(NOTE), 1500):
        uploads.receive_part(upload, start, BytesIO(NOTE[start : start + 1500]))
    assert len(keys(bucket)) == 3
    with uploads.taken_over(Upload.objects.get()) as blob:
        assert blobs.read_bytes(blob) == NOTE
    assert keys(bucket) == [blob.storage_key]


def test_a_store_out_of_reach_keeps_the_upload(bucket, announce, settings):
    upload = announce(is_resumable=True)
    uploads.receive_part(upload, 0, BytesIO(NOTE))
    there = settings.STORAGES
    away = {**there["default"], "OPTIONS": {**there["default"]["OPTIONS"], "endpoint_url": "http://127.0.0.1:1"}}
    settings.STORAGES = {**there, "default": away}
    with pytest.raises(Unavailable, match="could not be read"), uploads.taken_over(upload):
        pass
    settings.STORAGES = there
    with uploads.taken_over(upload) as blob:
        assert blob.size == len(NOTE)


def test_drift_finds_what_is_lost_and_what_nobody_names(bucket, organization, monkeypatch):
    monkeypatch.setattr("kb.drift.SETTLED_AFTER", timedelta(seconds=-60))
    blob = blobs.store_bytes(organization.id, NOTE)
    File.objects.create(organization=organization, blob=blob, name="a.txt", size=blob.size, sha256=bytes(blob.sha256))
    assert list(find_drift()) == []
    bucket.put_object(Key="left/over", Body=b"x")
    default_storage.delete(blob.storage_key)
    found = {finding.kind: finding for finding in find_drift()}
    assert {kind: finding.count for kind, finding in found.items()} == {"lost_files": 1, "unnamed_files": 1}
    assert found["unnamed_files"].repair() == 1
    assert keys(bucket) == []


def checked(*arguments: str) -> tuple[dict[str, bool], str]:
    out = StringIO()
    try:
        call_command("check_storage", "--json", *arguments, stdout=out)
    except CommandError as error:
        return {step["name"]: step["is_well"] for step in map(json.loads, out.getvalue().splitlines())}, str(error)
    return {step["name"]: step["is_well"] for step in map(json.loads, out.getvalue().splitlines())}, ""


def test_the_look_at_the_bucket_sends_a_file_as_a_browser_does_and_leaves_nothing(bucket):
    steps, error = checked("--origin", "https://kb.example.org")
    assert steps == {"write": True, "read": True, "delete": True, "signed address": True, "CORS": True}
    assert (keys(bucket), error) == ([], "")


def test_the_policies_are_printed(bucket):
    out = StringIO()
    call_command("check_storage", "--origin", "https://kb.example.org", stdout=out)
    text = out.getvalue()
    cors = json.loads(text[text.index("{") : text.index("\n\nRights")])
    assert cors["CORSRules"][0]["AllowedOrigins"] == ["https://kb.example.org"]
    assert "arn:aws:s3:::files/*" in text


def test_the_look_at_a_store_out_of_reach(bucket, settings):
    away = {**settings.STORAGES["default"], "OPTIONS": {**settings.STORAGES["default"]["OPTIONS"], "endpoint_url": "http://127.0.0.1:1"}}
    there, settings.STORAGES = settings.STORAGES, {**settings.STORAGES, "default": away}
    assert checked() == ({"access": False}, "The storage does not do what is needed: access.")
    settings.STORAGES = there


def test_the_look_at_a_folder():
    assert checked() == ({"write": True, "read": True, "delete": True}, "")


def test_a_bucket_that_answers_other_browsers_only_is_not_well(bucket, settings):
    from tests.servers.cors_proxy import CorsProxy

    with CorsProxy(default_storage.endpoint_url, origin="https://kb.example.org") as proxy:
        settings.ENV = settings.ENV.model_copy(update={"s3_public_endpoint": proxy.url})
        steps, error = checked("--origin", "https://kb.example.org")
        assert (steps["signed address"], steps["CORS"], error) == (True, True, "")
        steps, error = checked("--origin", "https://elsewhere.example.org")
        assert (steps["signed address"], steps["CORS"], error.endswith("needed: CORS.")) == (True, False, True)
