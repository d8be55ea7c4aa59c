import json
import re
from uuid import uuid4

import pytest
from django.test import Client

from kb import services
from kb.models import KnowledgeBase
from kb.models.derived import EmbeddingUse
from retrieval.models import RetrievalTrace

SEARCH, COMPARE, TRACES = "/api/v1/search", "/api/v1/search/compare", "/api/v1/traces"


class Api:
    def __init__(self, organization, role: str = "viewer", **values) -> None:
        _, key = services.create_api_key(organization, name="test", role=role, **values)
        self._client, self._headers = Client(), {"Authorization": f"Bearer {key}"}

    def post(self, path: str, body) -> object:
        data = body if isinstance(body, bytes | str) else json.dumps(body)
        return self._client.post(path, data=data, content_type="application/json", headers=self._headers)

    def get(self, path: str) -> object:
        return self._client.get(path, headers=self._headers)


@pytest.fixture
def api(organization) -> Api:
    return Api(organization)


def test_an_answer(api, library) -> None:
    library.add("The boiler stands in the cellar.", title="Heating", metadata={"year": 2020})
    response = api.post(SEARCH, {"query": "boiler cellar", "knowledge_bases": [library.id], "explain": True})
    assert response.status_code == 200
    body = response.json()
    (hit,) = body["hits"]
    assert hit["citation"].startswith("c:")
    assert hit["document"]["title"] == "Heating"
    assert hit["document"]["knowledge_base_id"] == library.id
    assert hit["span"] == {"start": 0, "end": 32}
    assert hit["score"] == hit["scores"]["fused"]
    assert body["searched"][0]["version"] == 1
    assert body["explanation"]["plans"] == ["vectors: exact", "words: exact"]
    assert body["reason"] is None
    trace = api.get(f"{TRACES}/{body['trace_id']}").json()
    assert trace["hits"][0]["citation"] == hit["citation"]
    assert trace["versions"] == {library.id: 1}


def test_the_hits_as_one_text(api, library) -> None:
    for number in range(3):
        library.add(f"The boiler stands in the cellar of house {number}.", title=f"House {number}")
    library.add("The boiler stands in the cellar of house 0.", title="Copy")
    asked = {"query": "boiler cellar", "context": {"max_tokens": 40}}
    body = api.post(SEARCH, asked).json()
    context = body["context"]
    assert context["omitted"] == 1
    assert context["text"].startswith(f"[1] {body['hits'][0]['document']['title']}\n{body['hits'][0]['text']}")
    assert [citation["ids"] for citation in context["citations"]] == [[hit["citation"]] for hit in body["hits"][:2]]
    assert sum(len(citation["also_in"]) for citation in context["citations"]) + len(body["hits"][2]["also_in"]) == 1
    assert api.post(SEARCH, {"query": "boiler"}).json()["context"] is None
    refused = api.post(SEARCH, {"query": "boiler", "context": {"tokenizer": "/etc/passwd"}})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "context.tokenizer")


def test_an_empty_answer_is_200_with_its_reason(api, library) -> None:
    response = api.post(SEARCH, {"query": "boiler"})
    assert (response.status_code, response.json()["hits"], response.json()["reason"]) == (200, [], "knowledge_base_empty")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": " \n\t"}, "query"),
        ({"query": 5}, "query"),
        ({"query": "a\x00b"}, "query"),
        ({"query": "a\ud800"}, "query"),
        ({"query": "a", "mode": "best"}, "mode"),
        ({"query": "a", "max_results": 0}, "max_results"),
        ({"query": "a", "max_results": 101}, "max_results"),
        ({"query": "a", "neighbours": 6}, "neighbours"),
        ({"query": "a", "rerank": "best"}, "rerank"),
        ({"query": "a", "top_k": 3}, "top_k"),
        ({"query": "a", "filters": {"type": "eq", "key": "document_id", "value": "1"}}, "filters.value"),
    ],
)
def test_bad_requests_name_the_place(api, library, body, path) -> None:
    response = api.post(SEARCH, body)
    assert response.status_code == 400
    assert path in [error["path"] for error in response.json()["errors"]]
    assert not RetrievalTrace.objects.exists()


def test_bad_min_score_and_filter(api, library) -> None:
    for body in ({"query": "a", "min_score": 2}, {"query": "a", "filters": {"type": "near", "key": "a", "value": 1}}, b"", b"{"):
        assert api.post(SEARCH, body).status_code == 400


def test_without_a_key(client, db) -> None:
    assert client.post(SEARCH, data="{}", content_type="application/json").status_code == 401


def test_foreign_absent_and_malformed_ids_are_the_same_404(library, other_organization) -> None:
    library.add("boiler")
    stranger = Api(other_organization, "admin")
    answers = {stranger.post(SEARCH, {"query": "a", "knowledge_bases": [kb]}).content for kb in (library.id, str(uuid4()), "Handbooks")}
    assert len(answers) == 1
    trace = Api(library.knowledge_base.organization).post(SEARCH, {"query": "boiler"}).json()["trace_id"]
    assert {stranger.get(f"{TRACES}/{one}").content for one in (trace, uuid4(), "x")} == answers
    assert stranger.get(TRACES).json()["items"] == []


def test_a_failed_embedding_is_503_with_reason_and_trace(api, library, make_space) -> None:
    library.add("boiler")
    broken = make_space("broken", provider="openai", dimension=512, endpoint="http://127.0.0.1:9/v1")
    EmbeddingUse.objects.filter(kb=library.knowledge_base.id).update(space=broken.pk)
    KnowledgeBase.objects.filter(id=library.id).update(space=broken)
    response = api.post(SEARCH, {"query": "boiler", "mode": "vector"})
    assert response.status_code == 503
    assert response.json()["reason"] == "embedding_error"
    assert api.get(f"{TRACES}/{response.json()['trace_id']}").json()["reason"] == "embedding_error"
    degraded = api.post(SEARCH, {"query": "boiler"}).json()
    assert (degraded["degraded"], len(degraded["hits"])) == ("embedding_error", 1)
    variants = [{"mode": "vector"}, {"mode": "keyword", "label": "words"}]
    answered = api.post(COMPARE, {"query": "boiler", "variants": variants}).json()
    assert (answered["pairs"], [passage["places"][0] for passage in answered["passages"]]) == ([], [None])
    compared = answered["results"]
    assert (compared[0]["reason"], compared[0]["answer"]) == ("embedding_error", None)
    assert compared[1]["label"] == "words"
    assert len(compared[1]["answer"]["hits"]) == 1


def test_compare(api, library) -> None:
    library.add("boiler in the cellar")
    body = {"query": "boiler", "variants": [{"label": mode, "mode": mode, "max_results": 3} for mode in ("vector", "keyword", "hybrid")]}
    compared = api.post(COMPARE, body).json()
    results = compared["results"]
    assert [[place["rank"] for place in passage["places"]] for passage in compared["passages"]] == [[1, 1, 1]]
    assert [(pair["first"], pair["second"], pair["overlap"]) for pair in compared["pairs"]] == [(0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0)]
    assert [result["answer"]["searched"][0]["mode"] for result in results] == ["vector", "keyword", "hybrid"]
    assert RetrievalTrace.objects.count() == 3
    assert api.post(COMPARE, {"query": "boiler", "variants": []}).status_code == 400


def test_a_comparison_stands_side_by_side(api, library) -> None:
    both = library.add("boiler in the cellar", title="Both")
    library.add("boiler boiler", title="Words")
    body = {
        "query": "boiler cellar",
        "variants": [
            {"label": "all", "mode": "keyword"},
            {"label": "best", "mode": "keyword", "max_results": 1},
            {"label": "none", "mode": "vector", "min_score": 1.0},
        ],
    }
    compared = api.post(COMPARE, body).json()
    first, second = compared["passages"]
    assert (first["document"]["id"], [place and place["rank"] for place in first["places"]]) == (str(both.id), [1, 1, None])
    assert (second["document"]["title"], [place and place["rank"] for place in second["places"]]) == ("Words", [2, None, None])
    assert first["places"][0]["scores"]["keyword"] == first["places"][0]["score"]
    assert compared["pairs"][0] == {
        "first": 0, "second": 1, "shared": 1, "overlap": 0.5, "only_first": [second["citation"]], "only_second": [],
    }  # fmt: skip
    assert (compared["results"][2]["reason"], compared["pairs"][2]["overlap"]) == ("below_min_score", 0.0)


def test_a_trace_is_for_those_who_see_all_its_knowledge_bases(make_library, organization) -> None:
    first, second = make_library("First"), make_library("Second")
    both = Api(organization)
    limited = Api(organization, knowledge_base_ids=[first.knowledge_base.id])
    trace = both.post(SEARCH, {"query": "boiler"}).json()["trace_id"]
    own = limited.post(SEARCH, {"query": "roof"}).json()["trace_id"]
    assert limited.get(f"{TRACES}/{trace}").status_code == 404
    assert [item["id"] for item in limited.get(TRACES).json()["items"]] == [own]
    assert [item["id"] for item in both.get(TRACES).json()["items"]] == [own, trace]
    assert second.id in [str(one) for one in RetrievalTrace.objects.get(id=trace).knowledge_base_ids]


def test_traces_are_paged(api, library) -> None:
    for number in range(5):
        api.post(SEARCH, {"query": f"question {number}"})
    seen, cursor = [], ""
    while True:
        page = api.get(f"{TRACES}?limit=2&cursor={cursor}").json()
        seen += [item["query"] for item in page["items"]]
        if not (cursor := page["next_cursor"]):
            break
    assert seen == [f"question {number}" for number in (4, 3, 2, 1, 0)]


def test_openapi_knows_the_routes(client, db) -> None:
    schema = client.get("/api/v1/schema?format=json").json()
    operation = schema["paths"]["/api/v1/search"]["post"]
    assert operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/SearchRequest")
    parts = schema["components"]["schemas"]
    assert {"query", "filters", "neighbours"} <= set(parts["SearchRequest"]["properties"])
    assert {"ShownHit", "TraceSummaryPage"} <= set(parts)
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema)))
    assert referred <= set(parts)
    assert {"GroupRequest", "NegationRequest", "ComparisonRequest"} <= referred
    assert {"/api/v1/traces", "/api/v1/traces/{trace_id}", "/api/v1/search/compare"} <= set(schema["paths"])
