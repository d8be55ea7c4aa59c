"""Files of channels that come outside of a form: by a signed address, and in pieces."""

import base64
import hashlib
from urllib.parse import urlsplit

import pytest

from kb.models import File
from tests.ingestion.api.channels import FILES

NOTE = b"# Leave\n\nThirty days of leave in the first year.\n"
TUS = {"Tus-Resumable": "1.0.0"}


def encoded(**said: str) -> str:
    return ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in said.items())


def wanted(**more) -> dict:
    return {"file_name": "leave.md", "size": len(NOTE), "sha256": hashlib.sha256(NOTE).hexdigest(), "media_type": "text/markdown", **more}


def begin(client, **said):
    headers = {**TUS, "Upload-Length": str(len(NOTE)), "Upload-Metadata": encoded(filename="leave.md", filetype="text/markdown", **said)}
    return client.post(f"{FILES}/uploads", headers=headers)


def test_a_file_in_pieces_becomes_a_version_of_its_title(editor, sender, channel):
    first = sender.send(b"# Leave\n\nThe old rule.\n", title="Leave rule")
    begun = begin(editor, title="leave rule", channel=channel["id"])
    assert begun.status_code == 201, begun.content
    url = urlsplit(begun["Location"]).path
    for start in (0, 20):
        piece = NOTE[start : start + 20] if start == 0 else NOTE[20:]
        headers = {**TUS, "Upload-Offset": str(start)}
        answer = editor.generic("PATCH", url, piece, content_type="application/offset+octet-stream", headers=headers)
        assert answer.status_code == 204, answer.content
    done = editor.post(f"{url}/complete", {"sha256": hashlib.sha256(NOTE).hexdigest()}, format="json")
    assert done.status_code == 201, done.content
    file = done.json()["file"]
    assert (file["resource_id"], file["version"], file["visibility"]) == (first["resource_id"], 2, "private")
    sender.work()
    assert sender.file(file["id"])["status"] == "indexed"
    assert "Thirty" in sender.texts("leave")[0]


def test_a_signed_address_brings_a_file_too(editor, anonymous, sender, channel):
    given = editor.post(f"{FILES}/upload-url", wanted(visibility="organization", policy={"ocr": "off"}), format="json")
    assert given.status_code == 201, given.content
    address = urlsplit(given.json()["upload_url"])
    assert anonymous.put(f"{address.path}?{address.query}", NOTE, content_type="application/octet-stream").status_code == 204
    file = editor.post(urlsplit(given.json()["complete_url"]).path).json()["file"]
    assert (file["title"], file["visibility"], file["channel_id"]) == ("leave.md", "organization", channel["id"])


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"visibility": "public"}, 400),
        ({"policy": '{"mod": 1}'}, 400),
        ({"title": "a\nb"}, 400),
        ({"channel": "nowhere"}, 404),
    ],
)
def test_what_is_wrong_is_told_before_the_bytes_come(editor, channel, said, status):
    assert begin(editor, **said).status_code == status
    assert File.objects.count() == 0


def test_viewers_and_strangers_begin_nothing(viewer, stranger, second_editor, editor, channel):
    assert begin(viewer, channel=channel["id"]).status_code == 403
    assert begin(stranger, channel=channel["id"]).status_code == 404
    url = urlsplit(begin(editor, channel=channel["id"])["Location"]).path
    assert second_editor.post(f"{url}/complete").status_code == 404
    assert editor.delete(url, headers=TUS).status_code == 204
