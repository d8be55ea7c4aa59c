"""A text in, a durable status out, and every text that is none refused with a sentence."""

import json
from uuid import uuid4

import pytest

TEXT = "# Leave\n\nEvery employee has thirty days of leave a year, and carries five of them over.\n"


def ingest(client, kb_url, body=TEXT, content_type="text/plain", **query):
    params = "&".join(f"{key}={value}" for key, value in query.items())
    body = body.encode("utf-8") if isinstance(body, str) else body
    return client.generic("POST", f"{kb_url}/ingest?{params}", body, content_type=content_type)


def status(client, kb_url, answer):
    return client.get(f"{kb_url}/ingestions/{answer.json()['ingestion_id']}").json()


def test_a_text_goes_from_pending_to_completed(editor, kb_url, work):
    answer = ingest(editor, kb_url, document_name="leave")
    assert answer.status_code == 202
    assert answer.json()["status"] == "pending"
    assert answer.json()["document_name"] == "leave"
    assert status(editor, kb_url, answer)["status"] == "pending"
    assert status(editor, kb_url, answer)["waiting_for"] == "no worker on queue extract"
    work(answer.json()["ingestion_id"], until="embed")
    assert status(editor, kb_url, answer)["status"] == "processing"
    work(answer.json()["ingestion_id"], until="finish")
    assert status(editor, kb_url, answer)["status"] == "completed"
    work(answer.json()["ingestion_id"])
    done = status(editor, kb_url, answer)
    assert done["status"] == "completed"
    assert done["document_id"] == answer.json()["document_id"]
    assert done["counters"]["chunks"] >= 1
    assert done["finished_at"]


def test_the_status_outlives_its_item(editor, kb_url, work):
    from ingestion.models import RunItem

    answer = ingest(editor, kb_url)
    work(answer.json()["ingestion_id"])
    RunItem.objects.filter(run_id=answer.json()["ingestion_id"]).delete()
    done = status(editor, kb_url, answer)
    assert (done["status"], done["document_id"]) == ("completed", answer.json()["document_id"])


def test_json_carries_metadata_to_the_document(editor, kb_url, work):
    body = json.dumps({"text": TEXT, "document_name": "leave", "metadata": {"team": "people", "year": 2026}})
    answer = ingest(editor, kb_url, body, "application/json")
    assert answer.status_code == 202, answer.content
    work(answer.json()["ingestion_id"])
    document = editor.get(f"{kb_url}/documents/{answer.json()['document_id']}").json()
    assert document["metadata"]["team"] == "people"
    assert document["metadata"]["year"] == 2026


def test_replace_takes_the_place_of_its_name(editor, kb_url, work):
    first = ingest(editor, kb_url, document_name="leave", replace="true")
    work(first.json()["ingestion_id"])
    second = ingest(editor, kb_url, TEXT.replace("thirty", "forty"), document_name="leave", replace="true")
    assert second.json()["document_id"] == first.json()["document_id"]
    chunks = editor.get(f"{kb_url}/documents/{first.json()['document_id']}").json()["chunk_page"]["items"]
    assert "thirty" in chunks[0]["text"]  # the previous version answers until then
    work(second.json()["ingestion_id"])
    chunks = editor.get(f"{kb_url}/documents/{first.json()['document_id']}").json()["chunk_page"]["items"]
    assert "forty" in "".join(chunk["text"] for chunk in chunks)
    assert "thirty" not in "".join(chunk["text"] for chunk in chunks)


def test_without_replace_two_texts_of_a_name_are_two_documents(editor, kb_url):
    answers = [ingest(editor, kb_url, document_name="leave") for _ in range(2)]
    assert len({answer.json()["document_id"] for answer in answers}) == 2
    names = [row["name"] for row in editor.get(f"{kb_url}/documents").json()["items"]]
    assert names == ["leave", "leave"]


def test_an_overtaken_text_says_so(editor, kb_url, work):
    first = ingest(editor, kb_url, document_name="leave", replace="true")
    second = ingest(editor, kb_url, "Another text of that name, which came later.", document_name="leave", replace="true")
    work(first.json()["ingestion_id"])
    work(second.json()["ingestion_id"])
    overtaken = status(editor, kb_url, first)
    assert (overtaken["status"], overtaken["reason"]) == ("failed", "superseded")
    assert status(editor, kb_url, second)["status"] == "completed"


@pytest.mark.parametrize(
    ("body", "content_type", "query", "words"),
    [
        (b"", "text/plain", {}, "empty"),
        (b" \n\t ", "text/plain", {}, "empty"),
        (b"text", "text/plain", {"replace": "true"}, "document_name"),
        (b"text", "text/plain", {"replace": "true", "document_name": "%20%20"}, "document_name"),
        (b"text", "text/plain", {"replace": "perhaps", "document_name": "a"}, "true or false"),
        (b"text", "text/plain", {"document_name": "x" * 301}, "301 characters"),
        (b"text", "text/plain", {"document_name": "a%00b"}, "control character"),
        (b"text", "text/plain", {"document_name": "a%0Ab"}, "control character"),
        (b"a\x00b", "text/plain", {}, "NUL"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "text/plain", {}, "UTF-8"),
        (b"%PDF-1.7\n\xe2\xe3\xcf\xd3", "text/plain", {}, "utf-8"),
        ("Gr\u00fc\u00dfe".encode("latin-1"), "text/plain", {}, "byte 2"),
        ("Gr\u00fc\u00dfe".encode(), "text/plain; charset=utf-16", {}, "utf-16"),
        (b"text", "text/plain; charset=klingon", {}, "klingon"),
        (b"text", "text/plain; charset=zlib", {}, "charset"),
        (b"text", "text/plain; charset=idna", {}, "charset"),
        (b"\xed\xa0\x80", "text/plain", {}, "UTF-8"),
        (b"\x00\xd8a\x00", "text/plain; charset=utf-16-le", {}, "utf-16"),
        (b'{"text": "a\\ud800b"}', "application/json", {}, "surrogate"),
        (b'{"text": "a\\u0000b"}', "application/json", {}, "NUL"),
        (b'{"text": "a", "documentName": "b"}', "application/json", {}, "documentName"),
        (b'{"text": 5}', "application/json", {}, "text"),
        (b'{"document_name": "b"}', "application/json", {}, "text"),
        (b'{"text": "a", "replace": true}', "application/json", {}, "document_name"),
        (b'{"text": "a", "metadata": {"a": {"b": 1}}}', "application/json", {}, "metadata"),
        (b"[", "application/json", {}, "JSON"),
    ],
)
def test_what_is_no_text_is_refused_with_a_sentence(editor, kb_url, body, content_type, query, words):
    answer = ingest(editor, kb_url, body, content_type, **query)
    assert answer.status_code == 400, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert words.lower() in answer.json()["detail"].lower(), answer.json()["detail"]
    assert editor.get(f"{kb_url}/documents").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ("Gr\u00fc\u00dfe aus K\u00f6ln".encode("latin-1"), "iso-8859-1"),
        ("Gr\u00fc\u00dfe aus K\u00f6ln".encode("utf-16"), "UTF-16"),
        ("Gr\u00fc\u00dfe aus K\u00f6ln".encode("utf-8-sig"), "utf-8"),
        ("\u3053\u3093\u306b\u3061\u306f".encode("shift_jis"), "Shift_JIS"),
    ],
)
def test_a_declared_charset_is_read(editor, kb_url, work, body, charset):
    answer = ingest(editor, kb_url, body, f"text/plain; charset={charset}")
    assert answer.status_code == 202
    work(answer.json()["ingestion_id"])
    document = editor.get(f"{kb_url}/documents/{answer.json()['document_id']}").json()
    assert document["chunk_page"]["items"][0]["text"] in ("Gr\u00fc\u00dfe aus K\u00f6ln", "\u3053\u3093\u306b\u3061\u306f")


def test_other_types_of_bodies_are_415(editor, kb_url):
    assert ingest(editor, kb_url, b"x", "application/pdf").status_code == 415


def test_a_text_of_30_mb_is_taken_and_one_of_40_is_too_large(editor, kb_url):
    assert ingest(editor, kb_url, b"many words " * (30_000_000 // 11)).status_code == 202
    too_large = ingest(editor, kb_url, b"many words " * (40_000_000 // 11))
    assert too_large.status_code == 413
    assert "Split it" in too_large.json()["detail"]


def test_an_idempotency_key_gives_the_first_answer_again(editor, kb_url):
    def send(text: str):
        return editor.generic("POST", f"{kb_url}/ingest", text.encode(), content_type="text/plain", HTTP_IDEMPOTENCY_KEY="once")

    first, again, other = send(TEXT), send(TEXT), send("Another text under the same key.")
    assert first.status_code == again.status_code == 202
    assert again.json() == first.json()
    assert other.status_code == 422
    assert len(editor.get(f"{kb_url}/documents").json()["items"]) == 1


def test_who_may_not_write_and_who_may_not_see(editor, viewer, stranger, anonymous, kb_url):
    assert ingest(viewer, kb_url).status_code == 403
    assert ingest(anonymous, kb_url).status_code == 401
    foreign = ingest(stranger, kb_url)
    absent = ingest(editor, f"/api/v1/knowledge-bases/{uuid4()}")
    assert foreign.status_code == absent.status_code == 404
    assert foreign.content == absent.content


def test_an_ingestion_belongs_to_its_knowledge_base(editor, viewer, stranger, kb_url, actor):
    from kb import services

    answer = ingest(editor, kb_url)
    path = f"/ingestions/{answer.json()['ingestion_id']}"
    other = services.create_knowledge_base(actor, document={"name": "Other", "visibility": "organization"})
    assert viewer.get(kb_url + path).status_code == 200
    assert stranger.get(kb_url + path).status_code == 404
    assert editor.get(f"/api/v1/knowledge-bases/{other.id}{path}").status_code == 404
    assert editor.get(f"{kb_url}/ingestions/nonsense").status_code == 404
