"""Files of an upload source through the API: what is kept, what is refused and why, and what a download may do."""

import hashlib
import threading
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

NOTE = b"# Leave\n\nEvery employee has thirty days of leave a year.\n"


def test_a_file_is_kept_listed_and_read_back(editor, viewer, source_url, upload):
    answer = upload(("Leave policy.md", NOTE))
    assert answer.status_code == 200, answer.content
    (row,) = answer.json()["stored"]
    assert answer.json()["rejected"] == []
    assert (row["file_name"], row["size"], row["state"], row["chunks"]) == ("Leave policy.md", len(NOTE), "not_indexed", 0)
    assert row["content_hash"] == hashlib.sha256(NOTE).hexdigest()
    assert row["uploaded_by"] == "alice"
    listed = viewer.get(f"{source_url}/files").json()
    assert listed == {"items": [row], "next_cursor": None}
    assert viewer.get(f"{source_url}/files/{row['file_id']}").json() == row
    content = viewer.get(f"{source_url}/files/{row['file_id']}/content")
    assert content.content == NOTE


def test_a_download_can_do_nothing_in_a_browser(viewer, source_url, upload):
    page = b"<!doctype html><html><body><p>Plain words of a page that is long enough.</p><script>alert(1)</script></body></html>"
    (row,) = upload(("seite\u00df.html", page)).json()["stored"]
    answer = viewer.get(f"{source_url}/files/{row['file_id']}/content")
    assert answer["Content-Disposition"].startswith("attachment;")
    assert "filename*=utf-8''seite%C3%9F.html" in answer["Content-Disposition"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"].startswith("sandbox")


def test_states_of_a_file(editor, source_url, upload, run_now):
    (row,) = upload(("a.md", NOTE)).json()["stored"]

    def state():
        return editor.get(f"{source_url}/files/{row['file_id']}").json()["state"]

    assert state() == "not_indexed"
    run_now()
    assert state() == "indexed"
    upload(("A.MD", NOTE + b"And five more after ten years.\n"))
    assert state() == "changed"
    assert editor.get(f"{source_url}/files?state=changed").json()["items"][0]["file_id"] == row["file_id"]
    assert editor.get(f"{source_url}/files?state=indexed").json()["items"] == []
    run_now()
    assert state() == "indexed"


def test_one_bad_file_does_not_refuse_the_others(upload):
    answer = upload(("good.md", NOTE), ("empty.txt", b""), ("picture.md", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"))
    assert answer.status_code == 200
    assert [row["file_name"] for row in answer.json()["stored"]] == ["good.md"]
    reasons = {row["file_name"]: row["reason"] for row in answer.json()["rejected"]}
    assert set(reasons) == {"empty.txt", "picture.md"}
    assert "empty" in reasons["empty.txt"]
    assert all(len(reason) > 20 for reason in reasons.values())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.txt", b""),
        ("blank.txt", b" \n\n\t "),
        ("binary.txt", b"some words and then\x00\x01\x02\x00 binary" * 20),
        ("program.md", b"\x7fELF\x02\x01\x01" + b"\x00" * 200),
        ("archive.txt", b"PK\x05\x06" + b"\x00" * 18),
        ("text.pdf", b"This is only text and no PDF at all."),
        ("broken.pdf", b"%PDF-1.7\n%%EOF"),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(editor, source_url, upload, name, content):
    answer = upload((name, content))
    assert answer.status_code == 400, answer.content
    assert answer.json()["stored"] == []
    (rejected,) = answer.json()["rejected"]
    assert rejected["file_name"] == name
    assert rejected["reason"].endswith((".", ")"))
    assert editor.get(f"{source_url}/files").json()["items"] == []


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd.txt", "passwd.txt"),
        ("..\\..\\boot.txt", "boot.txt"),
        ("/abs/olute.md", "olute.md"),
        ("a\tb.md", "ab.md"),
        ("Re\u0301sume\u0301.md", None),
    ],
)
def test_names_lose_their_paths(upload, sent, kept):
    (row,) = upload((sent, NOTE)).json()["stored"]
    assert "/" not in row["file_name"]
    assert "\\" not in row["file_name"]
    if kept is not None:
        assert row["file_name"] == kept


def test_a_name_of_300_characters_is_cut_and_keeps_its_ending(upload):
    (row,) = upload(("n" * 300 + ".md", NOTE)).json()["stored"]
    assert len(row["file_name"]) == 255
    assert row["file_name"].endswith(".md")


def test_a_name_that_comes_twice_in_a_request_is_one_file_the_last(editor, source_url, upload):
    answer = upload(("a.md", NOTE), ("A.md", NOTE + b"The last one.\n"))
    assert answer.status_code == 200
    (row,) = answer.json()["stored"]
    assert row["content_hash"] == hashlib.sha256(NOTE + b"The last one.\n").hexdigest()
    assert len(editor.get(f"{source_url}/files").json()["items"]) == 1


def test_unicode_forms_of_a_name_are_one_file(upload):
    (first,) = upload(("Re\u0301sume\u0301.md", NOTE)).json()["stored"]
    (second,) = upload(("R\u00e9sum\u00e9.MD", NOTE + b"more\n")).json()["stored"]
    assert first["file_id"] == second["file_id"]


def test_a_request_without_files_says_what_to_send(editor, source_url):
    for answer in (
        editor.post(f"{source_url}/files", {}, format="multipart"),
        editor.post(f"{source_url}/files", {"files": "text and no file"}, format="multipart"),
        editor.post(f"{source_url}/files", {"file": SimpleUploadedFile("a.md", NOTE)}, format="multipart"),
    ):
        assert answer.status_code == 400
        assert "`files`" in answer.json()["detail"]
    assert editor.post(f"{source_url}/files", {"a": 1}, format="json").status_code == 415
    broken = editor.generic("POST", f"{source_url}/files", b"--x\r\nbroken", content_type="multipart/form-data; boundary=y")
    assert broken.status_code == 400
    no_boundary = editor.generic("POST", f"{source_url}/files", b"x", content_type="multipart/form-data")
    assert no_boundary.status_code == 400


def test_too_many_files_in_one_request_says_so(upload):
    answer = upload(*[(f"{number}.md", NOTE) for number in range(101)])
    assert answer.status_code == 400
    assert "more than 100 files" in answer.json()["detail"]


def test_a_request_too_large_is_refused_by_its_length(editor, anonymous, source_url):
    answer = editor.generic(
        "POST", f"{source_url}/files", b"x", content_type="multipart/form-data; boundary=x", CONTENT_LENGTH=str(61 * 1024 * 1024)
    )
    assert answer.status_code == 413
    assert "several requests" in answer.json()["detail"]
    assert anonymous.generic("POST", f"{source_url}/files", b"x", CONTENT_LENGTH=str(61 * 1024 * 1024)).status_code == 401


def test_limits_of_the_source_hold(actor, editor, knowledge_base, source, source_url, upload):
    from kb import versioning

    document = dict(versioning.read(knowledge_base).document)
    document["sources"] = [{**document["sources"][0], "upload": {"max_files": 2, "max_file_bytes": 1000, "max_total_bytes": 1500}}]
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    big = upload(("big.md", b"word " * 300))
    assert "max_file_bytes" in big.json()["rejected"][0]["reason"]
    assert upload(("a.md", b"word " * 160)).status_code == 200
    assert "max_total_bytes" in upload(("b.md", b"word " * 160)).json()["rejected"][0]["reason"]
    assert upload(("a.md", b"term " * 190)).status_code == 200  # a replacement counts net
    assert upload(("b.md", b"word " * 20)).status_code == 200
    assert "max_files" in upload(("c.md", b"word " * 20)).json()["rejected"][0]["reason"]


def test_only_upload_sources_take_files(actor, editor, kb_url, knowledge_base):
    from ingestion.services.pushes import direct_source

    direct = direct_source(knowledge_base)
    answer = editor.post(f"{kb_url}/sources/{direct.id}/files", {"files": SimpleUploadedFile("a.md", NOTE)}, format="multipart")
    assert answer.status_code == 409
    assert editor.get(f"{kb_url}/sources/{direct.id}/files").status_code == 409


def test_a_deleted_file_stops_answering_at_once(editor, source_url, upload, run_now):
    (row,) = upload(("a.md", NOTE)).json()["stored"]
    run_now()
    answer = editor.delete(f"{source_url}/files/{row['file_id']}")
    assert (answer.status_code, answer.json()["status"]) == (200, "deleted")
    assert answer.json()["chunks_removed"] >= 1
    assert editor.get(f"{source_url}/files/{row['file_id']}").status_code == 404
    assert editor.delete(f"{source_url}/files/{row['file_id']}").status_code == 404
    assert editor.get(f"{source_url}/files/{row['file_id']}/content").status_code == 404


def test_a_file_deleted_in_the_middle_of_a_run_stays_deleted(editor, source_url, upload, work):
    (row,) = upload(("a.md", NOTE)).json()["stored"]
    run_id = editor.post(f"{source_url}/run").json()["run_id"]
    work(run_id, until="publish")
    assert editor.delete(f"{source_url}/files/{row['file_id']}").status_code == 200
    work(run_id)
    assert editor.get(f"{source_url}/documents").json()["items"] == []
    (verdict,) = editor.get(f"/api/v1/runs/{run_id}/documents").json()["items"]
    assert (verdict["verdict"], verdict["reason"]) == ("skipped", "superseded")


@pytest.fixture
def broken_store(editor, source_url, transactional_db):
    """Chunks that cannot be deleted: the database refuses as one that is shutting down."""
    import psycopg
    from django.db import connections

    values = connections["owner"].settings_dict
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    with psycopg.connect(**{key: values[name] for key, name in names.items() if values[name]}, autocommit=True) as owner:
        owner.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'the store is down' USING ERRCODE = '57P03'; END $$"
        )

        def break_it() -> None:
            owner.execute("CREATE TRIGGER refuse BEFORE DELETE ON kb_chunk FOR EACH ROW EXECUTE FUNCTION refuse()")

        yield break_it
        owner.execute("DROP TRIGGER IF EXISTS refuse ON kb_chunk")
        owner.execute("DROP FUNCTION refuse")


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_a_failed_delete_is_503_and_keeps_the_file(broken_store, editor, source_url, upload, run_now):
    (row,) = upload(("a.md", NOTE)).json()["stored"]
    run_now()
    broken_store()
    answer = editor.delete(f"{source_url}/files/{row['file_id']}")
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    kept = editor.get(f"{source_url}/files/{row['file_id']}").json()
    assert (kept["state"], kept["chunks"]) == ("indexed", 1)


def test_who_may_see_and_who_may_write(viewer, stranger, anonymous, source_url, upload):
    (row,) = upload(("a.md", NOTE)).json()["stored"]
    path = f"{source_url}/files/{row['file_id']}"
    assert viewer.delete(path).status_code == 403
    assert upload(("b.md", NOTE), client=viewer).status_code == 403
    assert anonymous.get(path).status_code == 401
    for url in (path, f"{path}/content", f"{source_url}/files"):
        foreign = stranger.get(url)
        absent = stranger.get(url.replace(row["file_id"], str(uuid4())))
        assert foreign.status_code == absent.status_code == 404
        assert foreign.content == absent.content


def test_an_idempotency_key_stores_once(editor, source_url):
    def send():
        files = {"files": SimpleUploadedFile("a.md", NOTE)}
        return editor.post(f"{source_url}/files", files, format="multipart", HTTP_IDEMPOTENCY_KEY="once")

    first, again = send(), send()
    assert first.status_code == again.status_code == 200
    assert again.json() == first.json()
    assert again["Idempotent-Replayed"] == "true"


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_the_same_file_from_two_clients_at_once_is_one_file(editor, source_url, upload):
    from django.db import connections

    gate, answers = threading.Barrier(2), []

    def send(content: bytes) -> None:
        gate.wait()
        answers.append(upload(("same.md", content)))
        connections.close_all()

    threads = [threading.Thread(target=send, args=(NOTE,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [200, 200]
    assert len({answer.json()["stored"][0]["file_id"] for answer in answers}) == 1
    assert len(editor.get(f"{source_url}/files").json()["items"]) == 1


def test_a_signed_in_person_needs_the_token_of_the_form(alice, source_url):
    from rest_framework.test import APIClient

    client = APIClient(enforce_csrf_checks=True)
    client.force_login(alice)
    refused = client.post(f"{source_url}/files", {"files": SimpleUploadedFile("a.md", NOTE)}, format="multipart")
    assert refused.status_code == 403
    client.cookies["csrftoken"] = "a" * 32
    taken = client.post(f"{source_url}/files", {"files": SimpleUploadedFile("a.md", NOTE)}, format="multipart", HTTP_X_CSRFTOKEN="a" * 32)
    assert taken.status_code == 200
    large = client.generic("POST", f"{source_url}/files", b"x", content_type="multipart/form-data; boundary=x", CONTENT_LENGTH=str(2**26))
    assert large.status_code == 413
