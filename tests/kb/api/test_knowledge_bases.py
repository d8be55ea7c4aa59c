"""Knowledge bases over REST: create, list, publish with a version, delete."""

import pytest

from kb import services
from kb.models import KnowledgeBase, KnowledgeBaseVersion

pytestmark = pytest.mark.django_db
ALL = "/api/v1/knowledge-bases"


def document_of(client, url, **values):
    return {**client.get(url).json()["document"], **values}


def test_a_posted_document_becomes_version_1(client, hashing_model):
    answer = client.post(f"{ALL}?comment=first", {"name": "Notes", "sources": [{"name": "files", "type": "upload"}]}, format="json")
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["version"], body["comment"], body["author_name"]) == (1, "first", "alice")
    assert body["document"]["embedding_model"] == "hashing"
    assert answer["ETag"] == '"1"'
    assert client.get(answer["Location"]).json() == body


def test_what_was_read_can_be_sent_back_unchanged(client, url):
    answer = client.put(url, document_of(client, url), format="json", headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["version"]) == (200, 2), answer.content


def test_a_viewer_may_not_create_and_a_bad_document_is_named_by_path(client, client_of, bob, hashing_model):
    assert client_of(bob).post(ALL, {"name": "x"}, format="json").status_code == 403
    answer = client.post(ALL, {"name": "x", "chunking": {"overlap": 0.9}, "colour": 1}, format="json")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert {fault["path"] for fault in answer.json()["errors"]} == {"chunking.overlap", "colour"}
    assert KnowledgeBase.objects.count() == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 400), (b"[]", 400), (b'"x"', 400), (b'{"name": "\\u0000"}', 400), (b'{"name": "a", "name": "b"}', 400), (b"\xff", 400)],
)
def test_a_body_that_is_no_document(client, hashing_model, body, status):
    assert client.post(ALL, body, content_type="application/json").status_code == status


def test_the_list_gives_descriptors_in_pages_and_by_name(client, actor, hashing_model):
    for name in ("Alpha", "Beta", "Alphabet"):
        services.create_knowledge_base(actor, document={"name": name, "sources": [{"name": "f", "type": "upload"}]})
    services.create_knowledge_base(actor, document={"name": "An agent's"}, hidden=True)
    first = client.get(f"{ALL}?limit=2").json()
    assert [item["name"] for item in first["items"]] == ["Alphabet", "Beta"]
    assert (first["items"][0]["version"], first["items"][0]["upload_sources"], first["items"][0]["web_sources"]) == (1, 1, 0)
    second = client.get(f"{ALL}?limit=2&cursor={first['next_cursor']}").json()
    assert ([item["name"] for item in second["items"]], second["next_cursor"]) == (["Alpha"], None)
    assert [item["name"] for item in client.get(f"{ALL}?name=alpha").json()["items"]] == ["Alphabet", "Alpha"]


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({}, "", 428),
        ({"If-Match": "*"}, "", 428),
        ({"If-Match": '"1"'}, "", 200),
        ({"If-Match": 'W/"1"'}, "", 200),
        ({"If-Match": '"7", W/"1"'}, "", 200),
        ({"If-Match": '"7","8"'}, "", 409),
        ({"If-Match": "1"}, "", 400),
        ({"If-Match": '"abc"'}, "", 400),
        ({"If-Match": '"1" junk'}, "", 400),
        ({}, "?version=1", 200),
        ({}, "?version=0", 409),
        ({}, "?version=one", 400),
        ({"If-Match": '"1"'}, "?version=2", 400),
    ],
)
def test_a_put_needs_the_version_that_it_edits(client, url, headers, query, status):
    answer = client.put(url + query, document_of(client, url, description="new"), format="json", headers=headers)
    assert answer.status_code == status, answer.content
    assert KnowledgeBaseVersion.objects.count() == (2 if status == 200 else 1)


def test_a_stale_put_answers_both_numbers(client, url):
    document = document_of(client, url, description="new")
    assert client.put(f"{url}?version=1", document, format="json")["ETag"] == '"2"'
    answer = client.put(f"{url}?version=1", document, format="json")
    assert answer.status_code == 409
    assert {key: answer.json()[key] for key in ("code", "expected", "current")} == {"code": "stale_version", "expected": 1, "current": 2}


def test_an_unchanged_document_is_304(client, url):
    assert client.get(url, headers={"If-None-Match": 'W/"1"'}).status_code == 304
    assert client.get(url, headers={"If-None-Match": '"2"'}).status_code == 200


def test_deleting_takes_it_away_at_once(client, url, client_of, bob, knowledge_base):
    assert client_of(bob).delete(url).status_code == 403
    assert client.delete(f"{url}?force=maybe").status_code == 400
    assert client.delete(url).status_code == 204
    assert (client.get(url).status_code, client.delete(url).status_code) == (404, 404)
    assert client.get(ALL).json()["items"] == []
    knowledge_base.refresh_from_db()
    assert knowledge_base.state == "deleting"


def test_the_schema_of_the_document(client):
    assert client.get(f"{ALL}/schema").json()["properties"]["chunking"]


def test_what_a_secret_is_worth_is_answered_nowhere(client, url, organization):
    services.set_secret(organization=organization, name="STORE_KEY", value="the very secret value")
    assert b"the very secret value" not in client.get(url).content + client.get("/api/v1/secrets").content
