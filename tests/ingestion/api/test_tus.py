"""Resumable uploads as a tus client sends them."""

import base64
import hashlib
from datetime import timedelta

import pytest
from django.utils import timezone

from kb import uploads
from kb.models import Upload

pytestmark = pytest.mark.django_db
NOTE = b"# Leave\n\nThirty days of leave in the first year.\n"
TUS = {"HTTP_TUS_RESUMABLE": "1.0.0"}


@pytest.fixture
def begin(editor, source_url):
    def _begin(content: bytes = NOTE, *, client=editor, length: object = None, **said: str):
        said = {"filename": "leave.md", "sha256": hashlib.sha256(content).hexdigest()} | said
        encoded = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in said.items() if value)
        headers = TUS | {"HTTP_UPLOAD_LENGTH": str(len(content) if length is None else length), "HTTP_UPLOAD_METADATA": encoded}
        return client.post(f"{source_url}/files/uploads", **headers)

    return _begin


def piece(client, url: str, offset: object, content: bytes, **headers: str):
    headers = {"content_type": "application/offset+octet-stream", "HTTP_UPLOAD_OFFSET": str(offset)} | TUS | headers
    return client.patch(url, content, **headers)


def test_a_resumable_upload_comes_in_pieces(begin, editor):
    answer = begin()
    assert (answer.status_code, answer["Tus-Resumable"]) == (201, "1.0.0")
    url = answer["Location"]
    assert piece(editor, url, 0, NOTE[:10])["Upload-Offset"] == "10"
    head = editor.head(url, **TUS)
    assert (head.status_code, head["Upload-Offset"], head["Upload-Length"], head["Cache-Control"]) == (
        200,
        "10",
        str(len(NOTE)),
        "no-store",
    )
    early = editor.post(f"{url}/complete")
    assert (early.status_code, early.json()["received"]) == (409, 10)
    assert piece(editor, url, 10, NOTE[10:]).status_code == 204
    done = editor.post(f"{url}/complete")
    assert done.status_code == 201, done.content
    assert done.json()["file"]["content_hash"] == hashlib.sha256(NOTE).hexdigest()
    assert editor.head(url, **TUS).status_code == 409


def test_a_piece_at_another_offset_is_refused_with_the_right_one(begin, editor):
    url = begin()["Location"]
    piece(editor, url, 0, NOTE[:10])
    for offset in (0, 9, 11):
        refused = piece(editor, url, offset, NOTE[10:])
        assert (refused.status_code, refused.json()["received"], refused["Tus-Resumable"]) == (409, 10, "1.0.0")
    assert piece(editor, url, 10, NOTE[10:] + b"more").status_code == 413
    assert editor.head(url, **TUS)["Upload-Offset"] == "10"


def test_the_hash_may_be_said_at_the_end_and_must_be_right(begin, editor):
    url = begin(sha256="")["Location"]
    piece(editor, url, 0, NOTE)
    assert editor.post(f"{url}/complete").status_code == 400
    assert editor.post(f"{url}/complete", {"sha256": hashlib.sha256(NOTE).hexdigest()}, format="json").status_code == 201
    other = begin(sha256="ab" * 32)["Location"]
    piece(editor, other, 0, NOTE)
    assert editor.post(f"{other}/complete").status_code == 422
    assert editor.post(f"{other}/complete").status_code == 409


def test_the_protocol_is_kept(begin, editor, source_url):
    assert editor.post(f"{source_url}/files/uploads").status_code == 412
    options = editor.options(f"{source_url}/files/uploads")
    assert (options.status_code, options["Tus-Version"], options["Tus-Max-Size"]) == (204, "1.0.0", "100000000")
    assert options["Tus-Extension"] == "creation,expiration,termination"
    assert begin(length=100_000_001).status_code == 413
    assert begin(length="many").status_code == 400
    assert begin(filename="").status_code == 400
    url = begin()["Location"]
    assert piece(editor, url, 0, NOTE, content_type="text/plain").status_code == 415
    assert editor.patch(url, NOTE, content_type="application/offset+octet-stream", HTTP_UPLOAD_OFFSET="0").status_code == 412
    assert editor.delete(url, **TUS).status_code == 204
    assert editor.head(url, **TUS).status_code == 404


def test_a_resumable_upload_is_its_maker_s(begin, editor, viewer, stranger):
    url = begin()["Location"]
    assert begin(client=viewer).status_code == 403
    for client in (viewer, stranger):
        assert client.head(url, **TUS).status_code == 404
        assert piece(client, url, 0, NOTE).status_code == 404
        assert client.delete(url, **TUS).status_code == 404
    assert editor.head(url, **TUS)["Upload-Offset"] == "0"


def test_each_piece_gives_it_another_day(begin, editor):
    url = begin()["Location"]
    Upload.objects.update(expires_at=timezone.now() + timedelta(minutes=1))
    piece(editor, url, 0, NOTE[:5])
    assert Upload.objects.get().expires_at > timezone.now() + timedelta(hours=23)
    Upload.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert editor.head(url, **TUS).status_code == 410
    assert piece(editor, url, 5, NOTE[5:]).status_code == 410


def test_too_many_that_wait_are_refused(begin, monkeypatch):
    monkeypatch.setattr(uploads, "MOST_OPEN", 2)
    assert [begin().status_code for _ in range(3)] == [201, 201, 429]
