"""Uploads outside of a form, as a client sees them: signed addresses to a folder of this installation."""

import hashlib
from datetime import timedelta
from io import BytesIO
from urllib.parse import urlsplit

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from config.errors import NotFound
from kb import uploads
from kb.models import ApiKey, Document, Grant, KnowledgeBase, Membership, Organization, Upload
from tests.samples.pdfs import text_pdf

pytestmark = pytest.mark.django_db
NOTE = b"# Leave\n\nThirty days of leave in the first year.\n"


def wanted(content: bytes = NOTE, **more: object) -> dict:
    return {
        "file_name": "leave.md",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "media_type": "text/markdown",
    } | more


@pytest.fixture
def ask(editor, source_url):
    return lambda client=editor, **more: client.post(f"{source_url}/files/upload-url", wanted(**more), format="json")


def put(client, url: str, content: bytes):
    address = urlsplit(url)
    return client.put(f"{address.path}?{address.query}", content, content_type="application/octet-stream")


def pieces() -> list[str]:
    folders = [f"uploads/{organization.id}" for organization in Organization.objects.all()]
    return [name for folder in folders if default_storage.exists(folder) for name in default_storage.listdir(folder)[1]]


@pytest.fixture(autouse=True)
def _no_pieces_are_left(organization):
    yield
    for upload in Upload.objects.all():
        Upload.objects.filter(id=upload.id).update(expires_at=timezone.now() - timedelta(hours=2), busy_until=None)
    uploads.collect()
    assert pieces() == []


def test_a_signed_upload_becomes_a_file(ask, editor, anonymous, run_now, source_url):
    answer = ask()
    assert answer.status_code == 201, answer.content
    given = answer.json()
    assert (given["method"], given["headers"]) == ("PUT", {"Content-Type": "text/markdown"})
    assert put(anonymous, given["upload_url"], NOTE).status_code == 204
    done = editor.post(given["complete_url"])
    assert done.status_code == 201, done.content
    file = done.json()["file"]
    assert (file["file_name"], file["media_type"], file["state"]) == ("leave.md", "text/markdown", "not_indexed")
    assert file["content_hash"] == hashlib.sha256(NOTE).hexdigest()
    run_now()
    assert editor.get(f"{source_url}/files/{file['file_id']}").json()["state"] == "indexed"


def test_an_address_serves_once(ask, editor, anonymous):
    given = ask().json()
    assert put(anonymous, given["upload_url"], NOTE).status_code == 204
    assert put(anonymous, given["upload_url"], NOTE).status_code == 409
    assert editor.post(given["complete_url"]).status_code == 201
    assert editor.post(given["complete_url"]).status_code == 409
    assert put(anonymous, given["upload_url"], NOTE).status_code == 409
    assert Document.objects.count() == 1


@pytest.mark.parametrize(
    ("content", "status"),
    [(NOTE + b"!", 413), (NOTE[:-1], 400), (NOTE[:-1] + b"!", 422), (b"", 400)],
    ids=["more", "less", "other", "none"],
)
def test_other_bytes_than_announced_are_refused_and_the_right_ones_still_taken(ask, editor, anonymous, content, status):
    given = ask().json()
    refused = put(anonymous, given["upload_url"], content)
    assert refused.status_code == status, refused.content
    missing = editor.post(given["complete_url"])
    assert (missing.status_code, missing.json()["received"]) == (409, 0)
    assert put(anonymous, given["upload_url"], NOTE).status_code == 204
    assert editor.post(given["complete_url"]).status_code == 201


def test_a_changed_or_expired_address_is_refused(ask, anonymous):
    given = ask().json()
    address, _, signature = given["upload_url"].rpartition("=")
    other = ask(file_name="other.md").json()
    assert put(anonymous, f"{address}={signature[::-1]}", NOTE).status_code == 403
    assert put(anonymous, address.replace("expires=", "expires=9") + f"={signature}", NOTE).status_code == 403
    assert put(anonymous, given["upload_url"].replace(given["upload_id"], other["upload_id"]), NOTE).status_code == 403
    assert put(anonymous, urlsplit(given["upload_url"]).path, NOTE).status_code == 403
    expired = int((timezone.now() - timedelta(seconds=1)).timestamp())
    late = uploads._signature(given["upload_id"], expired)
    path = urlsplit(given["upload_url"]).path
    assert put(anonymous, f"{path}?expires={expired}&signature={late}", NOTE).status_code == 403


def test_a_signature_in_other_letters_is_refused_like_any_other(ask, anonymous):
    path = urlsplit(ask().json()["upload_url"]).path
    for signature in ("%C3%A9", "%00", "%ED%A0%80"):
        assert anonymous.put(f"{path}?expires=1&signature={signature}", NOTE, content_type="application/octet-stream").status_code == 403
    assert put(anonymous, f"{path}?expires={'9' * 5000}&signature=x", NOTE).status_code == 403


@pytest.mark.parametrize("size", [True, "5", 5.0])
def test_a_size_is_a_whole_number(ask, size):
    assert ask(size=size).status_code == 400


def test_an_upload_that_is_deleted_beside_is_not_there(ask, anonymous):
    given = ask().json()
    assert put(anonymous, given["upload_url"], NOTE).status_code == 204
    upload = Upload.objects.get(id=given["upload_id"])  # as a request holds it that is about to complete it
    uploads.cancel(Upload.objects.get(id=upload.id))
    with pytest.raises(NotFound, match="deleted meanwhile"), uploads.taken_over(upload):
        pass
    with pytest.raises(NotFound, match="deleted meanwhile"):
        uploads.receive(upload, BytesIO(NOTE))


def test_what_expired_cannot_be_completed_and_is_collected(ask, editor, anonymous):
    given = ask().json()
    put(anonymous, given["upload_url"], NOTE)
    assert len(pieces()) == 1
    Upload.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert editor.post(given["complete_url"]).status_code == 410
    assert uploads.collect() == 0
    Upload.objects.update(expires_at=timezone.now() - timedelta(minutes=61))
    assert uploads.collect() == 1
    assert (pieces(), Upload.objects.count()) == ([], 0)
    assert editor.post(given["complete_url"]).status_code == 404


def test_what_cannot_be_read_is_refused_for_good(ask, editor, anonymous):
    locked = text_pdf(["secret"], password="x")
    given = ask(file_name="a.pdf", size=len(locked), sha256=hashlib.sha256(locked).hexdigest()).json()
    assert put(anonymous, given["upload_url"], locked).status_code == 204
    refused = editor.post(given["complete_url"])
    assert (refused.status_code, "password" in refused.json()["detail"]) == (422, True)
    assert editor.post(given["complete_url"]).status_code == 409
    assert pieces() == []


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"size": 10 * 1024 * 1024 + 1}, 413),
        ({"size": 0}, 400),
        ({"file_name": "../a.md"}, 400),
        ({"file_name": "a/b.md"}, 400),
        ({"file_name": "a\\b.md"}, 400),
        ({"sha256": "abc"}, 400),
        ({"media_type": "text"}, 400),
        ({"fileKey": "tenants/x"}, 400),
    ],
)
def test_what_is_announced_wrong_is_refused_at_once(ask, more, status):
    assert ask(**more).status_code == status
    assert not Upload.objects.exists()


def test_a_source_that_is_full_takes_no_announcement(ask, editor, knowledge_base, source_url, upload):
    document = editor.get(f"/api/v1/knowledge-bases/{knowledge_base.id}").json()["document"]
    document["sources"][0]["upload"] = {"max_files": 1, "max_file_bytes": 1000}
    answer = editor.put(f"/api/v1/knowledge-bases/{knowledge_base.id}", document, format="json", HTTP_IF_MATCH='"1"')
    assert answer.status_code == 200, answer.content
    assert ask(size=1001).status_code == 413
    upload(("first.md", NOTE))
    assert ask().status_code == 409


def test_only_who_asked_completes_and_only_an_editor_asks(ask, editor, viewer, stranger, anonymous, organization, alice):
    assert ask(viewer).status_code == 403
    assert ask(stranger).status_code == 404
    assert ask(anonymous).status_code == 401
    given = ask().json()
    put(anonymous, given["upload_url"], NOTE)
    for client, status in ((viewer, 404), (stranger, 404), (anonymous, 401)):
        assert client.post(given["complete_url"]).status_code == status
    assert editor.post(given["complete_url"]).status_code == 201


def test_who_may_not_edit_any_more_completes_nothing(ask, editor, anonymous, alice, organization):
    given = ask().json()
    put(anonymous, given["upload_url"], NOTE)
    Grant.objects.all().delete()
    Membership.objects.filter(user=alice, organization=organization).update(role="viewer")
    KnowledgeBase.objects.update(visibility="organization")
    assert editor.post(given["complete_url"]).status_code == 403
    ApiKey.objects.update(revoked_at=timezone.now())
    assert editor.post(given["complete_url"]).status_code == 401


def test_of_two_that_complete_at_once_one_does(ask, editor, anonymous):
    given = ask().json()
    put(anonymous, given["upload_url"], NOTE)
    Upload.objects.update(busy_until=timezone.now() + timedelta(minutes=1))
    assert editor.post(given["complete_url"]).status_code == 409
    assert editor.delete(f"/api/v1/files/uploads/{given['upload_id']}", HTTP_TUS_RESUMABLE="1.0.0").status_code == 409
    Upload.objects.update(busy_until=timezone.now() - timedelta(seconds=1))  # whoever did it was killed
    assert editor.post(given["complete_url"]).status_code == 201


def test_a_storage_that_is_away_spoils_nothing(ask, editor, anonymous, settings, tmp_path):
    given = ask().json()
    put(anonymous, given["upload_url"], NOTE)
    key = Upload.objects.get().parts[0]
    path = default_storage.path(key)
    aside = f"{path}-aside"
    import os

    os.rename(path, aside)
    os.mkdir(path)  # reading it is an error of the storage, and no missing file
    assert editor.post(given["complete_url"]).status_code == 503
    os.rmdir(path)
    os.rename(aside, path)
    assert editor.post(given["complete_url"]).status_code == 201
