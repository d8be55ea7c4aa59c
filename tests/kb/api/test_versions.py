"""History over REST: versions, differences, rollback, duplicate."""

import pytest

from kb import versioning

pytestmark = pytest.mark.django_db


@pytest.fixture
def two_versions(knowledge_base, actor):
    document = {**versioning.read(knowledge_base).document, "description": "second", "language": "de"}
    return versioning.publish(knowledge_base, document=document, expected=1, actor=actor, comment="why")


def test_every_version_can_be_listed_and_read(client, url, two_versions):
    listed = client.get(f"{url}/versions").json()["items"]
    assert [(item["number"], item["comment"], item["author_name"], item["is_current"]) for item in listed] == [
        (2, "why", "alice", True),
        (1, "", "alice", False),
    ]
    page = client.get(f"{url}/versions?limit=1").json()
    assert client.get(f"{url}/versions?limit=1&cursor={page['next_cursor']}").json()["items"] == listed[1:]
    first = client.get(f"{url}/versions/1")
    assert (first.json()["document"]["description"], first.json()["is_current"], first["ETag"]) == ("", False, '"1"')
    assert [client.get(f"{url}/versions/{number}").status_code for number in ("3", "0", "x", "9" * 40)] == [404] * 4


def test_the_difference_is_a_list_and_a_text(client, url, two_versions):
    body = client.get(f"{url}/diff?from=1&to=2").json()
    assert {change["path"] for change in body["changes"]} == {"description", "language"}
    assert '~ description: "" → "second"' in body["text"]
    assert client.get(f"{url}/diff").json() == body
    assert client.get(f"{url}/diff?from=2&to=2").json()["changes"] == []
    assert client.get(f"{url}/diff?from=1&to=9").status_code == 404
    assert client.get(f"{url}/diff?from=-1").status_code == 400


def test_rollback_publishes_the_old_document(client, url, two_versions):
    assert client.post(f"{url}/rollback", {"to": 1}, format="json").status_code == 428
    answer = client.post(f"{url}/rollback", {"to": 1, "comment": "oops"}, format="json", headers={"If-Match": '"2"'})
    assert (answer.status_code, answer["ETag"]) == (200, '"3"'), answer.content
    assert (answer.json()["document"]["description"], answer.json()["comment"]) == ("", "oops")
    assert client.post(f"{url}/rollback", {"to": 1}, format="json", headers={"If-Match": '"2"'}).status_code == 409


def test_a_duplicate_has_its_own_id_and_source_ids(client, url, two_versions):
    answer = client.post(f"{url}/duplicate", {"name": "Copy"}, format="json")
    assert answer.status_code == 201, answer.content
    original = client.get(url).json()
    copy = answer.json()
    assert copy["id"] != original["id"]
    assert copy["document"]["sources"][0]["id"] != original["document"]["sources"][0]["id"]
    assert copy["document"]["description"] == "second"
    assert client.post(f"{url}/duplicate", {"name": "copy"}, format="json").status_code == 409


def test_a_viewer_reads_history_and_changes_nothing(client_of, bob, url, two_versions):
    viewer = client_of(bob)
    assert [viewer.get(f"{url}{path}").status_code for path in ("", "/versions", "/versions/1", "/diff")] == [200] * 4
    assert viewer.post(f"{url}/rollback", {"to": 1}, format="json", headers={"If-Match": '"2"'}).status_code == 403
    assert viewer.post(f"{url}/duplicate", {"name": "Copy"}, format="json").status_code == 403
