"""Judgements and evaluations over REST: who may what, files, progress, and what the description says."""

import json

import pytest
from django.urls import reverse

from kb import services
from kb.access import actor_for_user
from retrieval import jobs
from tests.kb.api.conftest import signed_in
from tests.retrieval.api.test_search_api import Api

pytestmark = pytest.mark.django_db


@pytest.fixture
def editor(organization) -> Api:
    return Api(organization, "editor")


@pytest.fixture
def url(library) -> str:
    return f"/api/v1/knowledge-bases/{library.id}"


def judgement(document, question: str = "Where is the boiler?") -> dict:
    return {"question": question, "expected": [{"document": str(document.id), "grade": 3}], "note": "from support"}


def test_a_judgement_is_made_read_changed_and_forgotten(organization, client_for, url, library) -> None:
    document = library.add("The boiler stands in the cellar.", title="Heating")
    made = client_for("alice").post(f"{url}/judgements", judgement(document), format="json")
    assert made.status_code == 201
    shown = made.json()
    assert shown["expected"] == [
        {"document_id": str(document.id), "grade": 3, "quote": "", "title": "Heating", "url": "", "state": "there"}
    ]
    one = f"{url}/judgements/{shown['id']}"
    assert client_for("bob").get(one).json() == shown
    assert client_for("bob").get(f"{url}/judgements").json()["items"] == [shown]
    changed = client_for("alice").put(one, {**judgement(document), "note": ""}, format="json").json()
    assert (changed["note"], changed["id"]) == ("", shown["id"])
    assert client_for("alice").post(f"{url}/judgements", judgement(document), format="json").status_code == 409
    for method in ("put", "delete"):
        assert getattr(client_for("bob"), method)(one, judgement(document), format="json").status_code == 403
    assert client_for("bob").post(f"{url}/judgements", judgement(document), format="json").status_code == 403
    assert client_for("alice").delete(one).status_code == 204
    assert client_for("alice").get(one).status_code == 404


@pytest.fixture
def client_for(alice, bob):
    return lambda name: signed_in({"alice": alice, "bob": bob}[name])


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"question": " ", "expected": [{"document": "a"}]}, "question"),
        ({"question": "a", "expected": []}, "expected"),
        ({"question": "a", "expected": [{"document": "a", "citation": "c:1"}]}, "expected[0]"),
        ({"question": "a", "expected": [{"document": "a", "grade": 4}]}, "expected[0].grade"),
        ({"question": "a", "expected": [{"document": "absent.md"}]}, "expected[0]"),
        ({"question": "a", "expected": [{"document": "a"}], "k": 1}, "k"),
    ],
)
def test_what_is_wrong_is_named(client_for, url, body, path) -> None:
    response = client_for("alice").post(f"{url}/judgements", body, format="json")
    assert response.status_code == 400
    assert response.json()["errors"][0]["path"] == path


def test_hits_are_judged_for_their_question(client_for, url, library) -> None:
    library.add("The boiler stands in the cellar.")
    asked = {"query": "boiler", "knowledge_bases": [library.id]}
    answer = client_for("alice").post("/api/v1/search", asked, format="json").json()
    body = {"trace_id": answer["trace_id"], "citations": [answer["hits"][0]["citation"]], "grade": 2}
    assert client_for("bob").post(f"{url}/judgements/hits", body, format="json").status_code == 403
    judged = client_for("alice").post(f"{url}/judgements/hits", body, format="json").json()
    assert (judged["question"], judged["expected"][0]["grade"]) == ("boiler", 2)
    assert judged["expected"][0]["quote"] == "The boiler stands in the cellar."


def test_files_go_out_and_come_in(client_for, url, library) -> None:
    document = library.add("The boiler stands in the cellar.")
    alice = client_for("alice")
    alice.post(f"{url}/judgements", judgement(document), format="json")
    sheet = alice.get(f"{url}/judgements/file?form=csv")
    assert sheet["Content-Type"] == "text/csv; charset=utf-8"
    assert sheet.content.decode().splitlines()[0] == "question,document,name,grade,quote,note"
    again = alice.post(f"{url}/judgements/file", sheet.content, content_type="text/csv")
    assert again.json() == {"created": 0, "changed": 1}
    listed = alice.get(f"{url}/judgements/file").content
    again = alice.post(f"{url}/judgements/file", listed, content_type="application/json")
    assert again.json() == {"created": 0, "changed": 1}
    assert client_for("bob").post(f"{url}/judgements/file", listed, content_type="application/json").status_code == 403
    assert alice.get(f"{url}/judgements/file?form=xml").status_code == 400
    broken = {"judgements": [*json.loads(listed)["judgements"], {"question": "b", "expected": [{"document": "x"}]}]}
    refused = alice.post(f"{url}/judgements/file", broken, format="json")
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "judgements[1].expected[0]")


def test_an_evaluation_is_started_watched_and_read(client_for, url, library) -> None:
    document = library.add("The boiler stands in the cellar.", title="Heating")
    alice, bob = client_for("alice"), client_for("bob")
    assert alice.post(f"{url}/evaluations", {}, format="json").status_code == 400  # nothing judged
    alice.post(f"{url}/judgements", judgement(document), format="json")
    assert bob.post(f"{url}/evaluations", {}, format="json").status_code == 403
    started = alice.post(f"{url}/evaluations", {"k": 5, "comment": "first"}, format="json")
    assert started.status_code == 202
    shown = started.json()
    assert (shown["status"], shown["total"], shown["figures"], shown["settings"]["k"]) == ("queued", 1, {}, 5)
    busy = alice.post(f"{url}/evaluations", {}, format="json")
    assert (busy.status_code, busy.json()["id"]) == (409, shown["id"])
    jobs.work("evaluation", shown["id"])
    one = f"{url}/evaluations/{shown['id']}"
    done = bob.get(one).json()
    assert (done["status"], done["figures"]["hybrid"]["ndcg"], done["requested_name"]) == ("succeeded", 1.0, "alice")
    (question,) = bob.get(f"{one}/questions").json()["items"]
    assert question["results"]["own"]["found"] == [str(document.id)]
    assert question["expected"][0]["title"] == "Heating"
    assert bob.get(f"{url}/evaluations").json()["items"] == [done]
    assert bob.post(f"{one}/cancel").status_code == 403
    assert alice.post(f"{one}/cancel").status_code == 400  # it has ended
    assert bob.delete(one).status_code == 403
    assert alice.delete(one).status_code == 204
    assert alice.get(one).status_code == 404


def test_an_open_evaluation_is_cancelled(client_for, url, library) -> None:
    alice = client_for("alice")
    alice.post(f"{url}/judgements", judgement(library.add("boiler")), format="json")
    one = f"{url}/evaluations/{alice.post(f'{url}/evaluations', {}, format='json').json()['id']}"
    assert alice.post(f"{one}/cancel").json()["status"] == "cancelled"
    assert alice.post(f"{url}/evaluations", {}, format="json").status_code == 202


def test_a_limited_key_sees_only_its_own(organization, actor, library, make_library) -> None:
    other = make_library("Other")
    api = Api(organization, "editor", knowledge_base_ids=[library.knowledge_base.id])
    assert api.get(f"/api/v1/knowledge-bases/{library.id}/judgements").status_code == 200
    assert api.get(f"/api/v1/knowledge-bases/{other.id}/judgements").status_code == 404
    assert api.get(f"/api/v1/knowledge-bases/{other.id}/evaluations").status_code == 404


def test_the_routes_are_described(client_for) -> None:
    schema = client_for("bob").get(reverse("schema"), headers={"Accept": "application/json"}).json()
    base = "/api/v1/knowledge-bases/{kb_id}"
    wanted = ("judgements", "judgements/hits", "judgements/file", "evaluations", "evaluations/{evaluation_id}/questions")
    assert {f"{base}/{path}" for path in wanted} <= set(schema["paths"])
    figures = schema["components"]["schemas"]["ShownEvaluation"]["properties"]["figures"]
    assert figures["additionalProperties"] == {"$ref": "#/components/schemas/WayFigures"}


def test_organizations_have_their_own_judgements(organization, other_organization, mallory, library, hashing_model) -> None:
    stranger = signed_in(mallory)
    theirs = services.create_knowledge_base(actor_for_user(mallory), document={"name": "Theirs"})
    document = library.add("The boiler stands in the cellar.")
    refused = stranger.post(f"/api/v1/knowledge-bases/{theirs.id}/judgements", judgement(document), format="json")
    assert refused.status_code == 400  # Acme's document is as absent there
