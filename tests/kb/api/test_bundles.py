"""Export and import over REST."""

import io
import zipfile

import pytest

from kb.bundles.texts import read_document
from kb.models import KnowledgeBase

pytestmark = pytest.mark.django_db
IMPORT = "/api/v1/knowledge-bases/import"


def post(client, body, query="", media_type="application/yaml"):
    return client.post(f"{IMPORT}{query}", body, content_type=media_type)


def test_an_export_is_a_file_in_the_form_that_is_asked_for(client, url, knowledge_base):
    answer = client.get(f"{url}/export")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/yaml"), answer.content
    assert answer["Content-Disposition"] == 'attachment; filename="handbooks.yaml"'
    document = client.get(url).json()["document"]
    assert read_document(answer.content.decode()) == {"id": str(knowledge_base.id), **document}
    packed = client.get(f"{url}/export?format=zip&version=1", headers={"Accept": "application/zip"})
    assert packed["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
        assert archive.namelist() == ["manifest.json", "knowledge-bases/handbooks.yaml"]


@pytest.mark.parametrize(("query", "status"), [("?format=pdf", 400), ("?version=7", 404), ("?version=x", 400)])
def test_an_export_of_what_is_not_there(client, url, query, status):
    assert client.get(f"{url}/export{query}").status_code == status


def test_what_was_exported_comes_in_under_another_name(client, url):
    for form, media_type, name in (("yaml", "application/yaml", "One"), ("zip", "application/octet-stream", "Two")):
        content = client.get(f"{url}/export?format={form}").content
        assert post(client, content, media_type=media_type).status_code == 409
        answer = post(client, content, f"?name={name}", media_type)
        assert answer.status_code == 201, answer.content
        (made,) = answer.json()["knowledge_bases"]
        assert (made["action"], made["name"], made["version"], made["notes"]) == ("created", name, 1, [])
        assert client.get(f"/api/v1/knowledge-bases/{made['knowledge_base_id']}").json()["name"] == name


def test_a_dry_run_makes_nothing(client, hashing_model):
    answer = post(client, "name: a\nembedding_model: big", "?dry_run=true&model=big=hashing")
    assert answer.status_code == 200
    (would,) = answer.json()["knowledge_bases"]
    assert (would["knowledge_base_id"], [note["path"] for note in would["notes"]]) == (None, ["embedding_model"])
    assert not KnowledgeBase.objects.exists()


def test_a_document_of_eddi_is_converted_and_told(client, hashing_model):
    body = {
        "name": "a",
        "chunkSize": 800,
        "storeNamespace": "id",
        "embeddingProvider": "hashing",
        "embeddingParameters": {"model": "hashing"},
    }
    answer = client.post(IMPORT, body, format="json")
    assert answer.status_code == 201, answer.content
    notes = {note["path"]: note["new"] for note in answer.json()["knowledge_bases"][0]["notes"]}
    assert notes == {"embeddingProvider": "hashing/hashing", "chunkSize": 200, "storeNamespace": None, "embedding_model": "hashing"}


@pytest.mark.parametrize(
    ("body", "query", "media_type", "status", "detail"),
    [
        ("name: a\ncolour: red", "", "application/yaml", 400, "colour"),
        ("name: a\nname: b", "", "text/yaml", 400, "stands twice"),
        ("name: a", "?dry_run=maybe", "application/yaml", 400, "dry_run"),
        ("name: a", "?model=x", "application/yaml", 400, "OLD=NEW"),
        ("name: a", "", "multipart/form-data; boundary=x", 415, "send application/yaml"),
        (b"PK\x03\x04nothing", "", "application/zip", 400, "damaged"),
        (b" " * 4_200_000, "", "application/yaml", 413, "at most"),
        ("name: a\nembedding_model: nobody", "", "application/yaml", 400, "Registered: hashing"),
    ],
)
def test_what_is_refused(client, hashing_model, body, query, media_type, status, detail):
    answer = post(client, body, query, media_type)
    assert (answer.status_code, detail in answer.json()["detail"]) == (status, True), answer.content
    assert not KnowledgeBase.objects.exists()


def test_rights_and_doing_it_once(client, client_of, bob, url, key_client, knowledge_base):
    assert post(client_of(bob), "name: a").status_code == 403
    assert client_of(bob).get(f"{url}/export").status_code == 200
    limited = key_client(role="editor", knowledge_base_ids=[knowledge_base.id])
    assert post(limited, "name: a").status_code == 400
    first, second = (client.post(IMPORT, "name: a", content_type="application/yaml", headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (first.status_code, second.content, second["Idempotent-Replayed"]) == (201, first.content, "true")
