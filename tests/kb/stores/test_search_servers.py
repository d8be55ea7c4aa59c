"""Elasticsearch and OpenSearch: what the official clients send is what we send, and what they do when a part goes wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

from config.addresses import parse_networks
from kb.models import EmbeddingSpace
from kb.stores.base import Place, Point, StoreRefused, StoreSpec, StoreUnavailable, VectorQuery
from kb.stores.elasticsearch import ElasticsearchStore
from tests.servers import search_server
from tests.servers.search_server import ELASTICSEARCH, OPENSEARCH, Cluster

FLAVOURS = (ELASTICSEARCH, OPENSEARCH)
KEY = "sesame-open-wide"
PLACE = Place(UUID(int=1), UUID(int=2), EmbeddingSpace(pk=5, dimension=4))
DOCUMENT = UUID(int=3)
INDEX = "lectern_s5"


@dataclass
class Bench:
    store: ElasticsearchStore
    cluster: Cluster
    url: str

    def add(self, *vectors: list[float], first: int = 1) -> None:
        self.store.add(PLACE, [Point(first + number, DOCUMENT, vector) for number, vector in enumerate(vectors)])

    def search(self, *vector: float, limit: int = 10, **values: Any):
        asked = VectorQuery(PLACE.organization, [PLACE.knowledge_base], PLACE.space, np.array(vector), limit, **values)
        return self.store.search(asked)


@pytest.fixture(autouse=True)
def _loopback_is_allowed(settings, monkeypatch):
    settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": parse_networks("127.0.0.1/32:*")})
    monkeypatch.setattr("config.http.environment", lambda: settings.ENV)


@contextmanager
def serving(flavour: str, **parameters: str) -> Iterator[Bench]:
    with search_server.serving(flavour, api_key=KEY, user=("lectern", KEY)) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        store = ElasticsearchStore(StoreSpec("elasticsearch", {"server_url": url} | (parameters or {"api_key": KEY})))
        yield Bench(store, server.cluster, url)
        store._server._client.close()


@pytest.fixture(params=FLAVOURS)
def bench(request) -> Iterator[Bench]:
    with serving(request.param) as found:
        yield found


@pytest.fixture
def elastic() -> Iterator[Bench]:
    with serving(ELASTICSEARCH) as found:
        yield found


def official(bench: Bench):
    if bench.cluster.flavour == OPENSEARCH:
        client = pytest.importorskip("opensearchpy", reason="needs requirements/stores.txt")
        return client.OpenSearch(bench.url, http_auth=("lectern", KEY))
    return pytest.importorskip("elasticsearch", reason="needs requirements/stores.txt").Elasticsearch(bench.url, api_key=KEY)


def test_the_official_client_reads_what_the_server_answers_and_sends_what_we_send(bench, request):
    bench.add([1, 0, 0, 0], [0, 1, 0, 0])
    assert [chunk for chunk, _ in bench.search(1, 0, 0, 0, limit=1).rows] == [1]
    assert bench.search(1, 0, 0, 0, chunks=[2]).rows == [(2, pytest.approx(0))]
    bench.store.remove(PLACE, [2])
    assert bench.store.chunks_after(PLACE, 0, 10) == [1]
    ours, bench.cluster.seen = bench.cluster.seen, []
    bench.cluster.indexes.clear()
    bodies = [body for _, _, body in ours if body]
    made, lines, nearest, exact, deleted, listed = bodies
    client = official(bench)
    request.addfinalizer(client.close)
    spread = bench.cluster.flavour == ELASTICSEARCH

    def options(body: dict[str, Any]) -> dict[str, Any]:
        return body if spread else {"body": body}

    def found(body: dict[str, Any]) -> list[str]:
        fields = {name.replace("_source", "source") if spread else name: value for name, value in body.items()}
        answer = client.search(index=INDEX, allow_partial_search_results=False, **options(fields))
        return [hit["_id"] for hit in answer["hits"]["hits"]]

    assert client.info()["version"]["number"]
    assert client.indices.create(index=INDEX, **options(made))["acknowledged"]
    assert client.indices.get_mapping(index=INDEX)[INDEX]["mappings"] == made["mappings"]
    bulk = {"operations": lines} if spread else {"body": lines}
    assert not client.bulk(index=INDEX, refresh="wait_for", **bulk)["errors"]
    assert found(nearest) == ["1"]
    assert found(exact) == ["2"]
    removal = {"conflicts": "proceed", "refresh": True}
    assert client.delete_by_query(index=INDEX, **removal, **options(deleted))["deleted"] == 1
    assert found(listed) == ["1"]
    assert [body for _, _, body in bench.cluster.seen if body] == bodies


@pytest.mark.parametrize(
    ("given", "known"), [({"user_name": "lectern", "password": KEY}, True), ({"api_key": "wrong"}, False), ({"user_name": "x"}, False)]
)
def test_who_asks(given, known):
    with serving(ELASTICSEARCH, **given) as bench:
        if known:
            bench.add([1, 0, 0, 0])
            return
        with pytest.raises(StoreRefused, match="Check its credential") as caught:
            bench.add([1, 0, 0, 0])
        assert "wrong" not in caught.value.message.replace("wrong authentication", "")


def test_a_bulk_request_that_fails_in_part_is_an_error(bench):
    bench.cluster.item_failures = {"2": (429, "es_rejected_execution_exception", "the queue is full")}
    with pytest.raises(StoreUnavailable, match=r"1 of 3 points \(429, es_rejected_execution_exception: the queue is full\)"):
        bench.add([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0])
    bench.cluster.item_failures["3"] = (400, "document_parsing_exception", "failed to parse")
    with pytest.raises(StoreRefused, match=r"2 of 3 points \(400, document_parsing_exception"):
        bench.add([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0])


def test_what_only_some_shards_answer_is_no_answer(bench):
    bench.add([1, 0, 0, 0])
    bench.cluster.failed_shards = 1
    for ask in (
        lambda: bench.search(1, 0, 0, 0),
        lambda: bench.search(1, 0, 0, 0, chunks=[1]),
        lambda: bench.store.chunks_after(PLACE, 0, 5),
    ):
        with pytest.raises(StoreUnavailable, match="in part only"):
            ask()


def test_what_was_not_deleted_is_told(bench):
    bench.add([1, 0, 0, 0])
    bench.cluster.conflicts = 1
    with pytest.raises(StoreUnavailable, match="deleted a part only"):
        bench.store.remove(PLACE, [1])
    bench.cluster.conflicts = 0
    bench.store.remove(PLACE, [1])
    assert bench.store.chunks_after(PLACE, 0, 5) == []


def test_a_graph_that_ends_too_early_is_made_good_by_a_scan(bench):
    bench.add(*[[1, number / 10, 0, 0] for number in range(8)])
    assert (bench.search(1, 0, 0, 0, limit=6).exact, bench.search(1, 0, 0, 0, limit=9).exact) == (False, True)
    bench.cluster.refuses_graph = True
    answer = bench.search(1, 0, 0, 0, limit=6)
    assert ([chunk for chunk, _ in answer.rows], answer.exact) == ([1, 2, 3, 4, 5, 6], True)


def test_more_than_a_page_of_results(elastic, monkeypatch):
    monkeypatch.setattr("kb.stores.elasticsearch.MOST", 4)
    elastic.add(*[[1, number // 2, 0, 0] for number in range(11)])  # pairs of equal scores, over the ends of pages
    answer = elastic.search(1, 0, 0, 0, limit=10)
    assert ([chunk for chunk, _ in answer.rows], answer.exact) == (list(range(1, 11)), True)
    assert elastic.store.chunks_after(PLACE, 1, 9) == list(range(2, 11))


def test_an_index_that_another_made_while_we_looked_is_used(elastic):
    create = Cluster._create

    def raced(self: Cluster, name: str, body: dict[str, Any]) -> dict[str, Any]:
        create(self, name, body)
        return create(self, name, body)

    elastic.cluster._create = raced.__get__(elastic.cluster)
    elastic.add([1, 0, 0, 0])
    assert elastic.search(1, 0, 0, 0).rows == [(1, pytest.approx(1))]


def test_an_index_without_vectors_is_refused(bench):
    bench.cluster.answer("POST", f"/{INDEX}/_bulk", {}, b'{"index":{"_id":"1"}}\n{"vector":[1,2,3,4]}\n', "application/x-ndjson")
    with pytest.raises(StoreRefused, match="holds no vectors"):
        bench.add([1, 0, 0, 0])
    with pytest.raises(StoreRefused, match="only supported on"):
        bench.search(1, 0, 0, 0)


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"server_url": "https://host:9200", "index_name": "docs,secrets-*"}, "index_name"),
        ({"server_url": "https://host:9200", "index_name": "Docs"}, "small letters"),
        ({"server_url": "https://user:pass@host:9200"}, "api_key or password"),
        ({"server_url": "host:9200"}, "server_url must look like"),
        ({"server_url": "https://host", "api_key": "k", "password": "p"}, "not both"),
    ],
)
def test_parameters_that_cannot_be_meant(parameters, why):
    with pytest.raises(StoreRefused, match=why) as caught:
        ElasticsearchStore(StoreSpec("elasticsearch", parameters))
    assert "pass@" not in caught.value.message


def test_a_question_without_a_direction_asks_nobody(elastic):
    assert elastic.search(0, 0, 0, 0).rows == []
    assert elastic.cluster.seen == []
    assert elastic.search(1, 0, 0, 0, documents=[]).rows == []
    elastic.add([1, 0, 0, 0])
    assert elastic.search(1, 0, 0, 0, documents=[uuid4()]).rows == []
