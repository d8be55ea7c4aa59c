"""Every route of ingestion, as nobody and as another tenant: 401, and the 404 of an absent thing byte for byte."""

from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from ingestion.api.urls import urlpatterns

METHODS = ("get", "post", "put", "patch", "delete")
PARAMETERS = {"kb_id", "source_id", "file_id", "document_id", "run_id", "ingestion_id"}  # the others are walked in tests/test_tenancy.py
OF_SOMETHING = [pattern for pattern in urlpatterns if pattern.pattern.converters and set(pattern.pattern.converters) <= PARAMETERS]
ROUTES = [(pattern, method) for pattern in OF_SOMETHING for method in METHODS if hasattr(pattern.callback.view_class, method)]


@pytest.fixture
def ids(editor, kb_url, source_url, upload, knowledge_base, source, sender) -> dict[str, str]:
    (row,) = upload(("a.md", b"Every employee has thirty days of leave.\n")).json()["stored"]
    ingestion = editor.generic("POST", f"{kb_url}/ingest", b"A text of its own.", content_type="text/plain").json()
    return {
        "kb_id": str(knowledge_base.id),
        "source_id": str(source.id),
        "file_id": row["file_id"],
        "document_id": row["file_id"],
        "run_id": editor.post(f"{source_url}/run").json()["run_id"],
        "ingestion_id": ingestion["ingestion_id"],
        "channel_file_id": sender.send(b"Some words.", title="a", visibility="organization")["id"],
    }


@pytest.mark.parametrize(("pattern", "method"), ROUTES, ids=[f"{method} {pattern.name}" for pattern, method in ROUTES])
def test_a_stranger_finds_nothing_and_nobody_gets_in(pattern, method, ids, stranger, anonymous, editor):
    names = pattern.pattern.converters
    if pattern.name.startswith("file"):
        ids["file_id"] = ids["channel_file_id"]
    real = reverse(pattern.name, kwargs={name: ids[name] for name in names})
    absent = reverse(pattern.name, kwargs={name: str(uuid4()) for name in names})
    nonsense = reverse(pattern.name, kwargs=dict.fromkeys(names, "none-of-these"))

    def send(client, url: str):
        if pattern.name == "ingest":
            return client.generic("POST", url, b"text", content_type="text/plain")
        values = {"files": SimpleUploadedFile("b.md", b"Some words of a note.\n")} if pattern.name == "source-files" else {}
        return getattr(client, method)(url, values, format="multipart") if method == "post" else getattr(client, method)(url)

    answers = [send(stranger, url) for url in (real, absent, nonsense)] + [send(editor, absent)]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    assert send(anonymous, real).status_code == 401
    wrong = type(anonymous)(HTTP_AUTHORIZATION="Bearer lk_wrong")
    assert send(wrong, real).status_code == send(wrong, absent).status_code == 401
