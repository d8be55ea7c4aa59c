"""MongoDB Atlas: an index that lags behind, members that nobody may reach, and failures that are told as what they are."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pytest

pytest.importorskip("pymongo", reason="needs requirements/mongodb.txt")

from config.addresses import AddressRefused, parse_networks
from kb.models import EmbeddingSpace
from kb.stores import base, mongodb_connections
from kb.stores.base import Place, Point, StoreRefused, StoreSpec, StoreUnavailable, VectorQuery
from kb.stores.mongodb_atlas import AtlasStore
from tests.servers import mongo_server
from tests.servers.mongo_server import MongoServer

USER = ("lectern", "sesame-open-wide")
PLACE = Place(UUID(int=1), UUID(int=2), EmbeddingSpace(pk=5, dimension=4))
DOCUMENT = UUID(int=3)


@dataclass
class Bench:
    store: AtlasStore
    server: MongoServer

    @property
    def cluster(self):
        return self.server.cluster

    def add(self, *vectors: list[float], first: int = 1) -> None:
        self.store.add(PLACE, [Point(first + number, DOCUMENT, vector) for number, vector in enumerate(vectors)])

    def search(self, *vector: float, limit: int = 10, **values: Any):
        asked = VectorQuery(PLACE.organization, [PLACE.knowledge_base], PLACE.space, np.array(vector), limit, **values)
        return self.store.search(asked)

    def calls(self):
        yield lambda: self.add([1, 0, 0, 0])
        yield lambda: self.store.remove(PLACE, [1])
        yield lambda: self.store.remove(PLACE, None)
        yield lambda: self.search(1, 0, 0, 0)
        yield lambda: self.store.chunks_after(PLACE, 0, 5)


@pytest.fixture(autouse=True)
def _loopback_is_allowed(settings, monkeypatch):
    settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": parse_networks("127.0.0.1/32:*")})
    monkeypatch.setattr("config.http.environment", lambda: settings.ENV)
    monkeypatch.setattr(mongodb_connections, "_SECONDS", 1)


@contextmanager
def serving(string: str = "mongodb://{user}:{password}@{address}/?authSource=admin") -> Iterator[Bench]:
    with mongo_server.serving(USER) as server:
        text = string.format(user=USER[0], password=USER[1], address=server.cluster.address)
        store = AtlasStore(StoreSpec("mongodb-atlas", {"connection_string": text}))
        yield Bench(store, server)
        if store._opened:
            store._opened.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    with serving() as found:
        yield found


def test_what_was_written_is_found_at_once_although_the_index_lags(bench):
    bench.cluster.polls, bench.cluster.lag = 4, 3
    bench.add([1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0])
    answer = bench.search(2, 0, 0, 0, limit=2)
    assert [chunk for chunk, _ in answer.rows] == [1, 3]
    assert [cosine for _, cosine in answer.rows] == pytest.approx([1, 2**-0.5])
    bench.add([0, 0, 1, 0])  # the first one anew
    assert dict(bench.search(1, 0, 0, 0).rows)[1] == pytest.approx(0)
    bench.store.remove(PLACE, [3])
    assert sorted(chunk for chunk, _ in bench.search(1, 0, 0, 0).rows) == [1, 2] == bench.store.chunks_after(PLACE, 0, 5)


def test_an_index_that_does_not_catch_up_is_told(bench, monkeypatch):
    bench.add([1, 0, 0, 0])
    monkeypatch.setattr(base, "WRITE_DEADLINE", 0.5)
    bench.cluster.lag = 10_000
    with pytest.raises(StoreUnavailable, match="has not caught up"):
        bench.add([0, 1, 0, 0], first=2)


def test_an_index_that_is_absent_or_unfinished_is_no_empty_answer(bench, monkeypatch):
    bench.add([1, 0, 0, 0])
    (shelf,) = bench.cluster.shelves.values()
    (index,) = shelf.indexes.values()
    index.polls = 10_000
    with pytest.raises(StoreUnavailable, match="still building"):
        bench.search(1, 0, 0, 0)
    monkeypatch.setattr(base, "WRITE_DEADLINE", 0.3)
    with pytest.raises(StoreUnavailable, match="still being built"):
        bench.add([0, 1, 0, 0], first=2)
    shelf.indexes.clear()
    with pytest.raises(StoreRefused, match="has no index lectern_vectors in lectern_s5"):
        bench.search(1, 0, 0, 0)
    bench.cluster.shelves.clear()
    with pytest.raises(StoreRefused, match="has no index"):
        bench.search(1, 0, 0, 0)


def test_a_graph_that_ends_too_early_is_made_good_by_a_scan(bench):
    bench.add(*[[1, number / 10, 0, 0] for number in range(8)])
    bench.cluster.halves_graph = True
    answer = bench.search(1, 0, 0, 0, limit=6)
    assert ([chunk for chunk, _ in answer.rows], answer.exact) == ([1, 2, 3, 4, 5, 6], True)


def test_the_index_of_another_length(bench):
    bench.add([1, 0, 0, 0])
    wider = Place(PLACE.organization, PLACE.knowledge_base, EmbeddingSpace(pk=5, dimension=3))
    with pytest.raises(StoreRefused, match=r"holds vectors of 4 dimensions, the space has 3"):
        bench.store.add(wider, [Point(1, DOCUMENT, [1, 0, 0])])
    with pytest.raises(StoreRefused, match="indexed with 4 dimensions but queried with 3"):
        bench.search(1, 0, 0)


def test_a_wrong_password_is_refused_and_not_shown():
    with serving("mongodb://{user}:another-one@{address}/") as bench:
        for call in bench.calls():
            with pytest.raises(StoreRefused, match="Check its credential") as caught:
                call()
            assert "another-one" not in caught.value.message


@pytest.mark.parametrize(
    ("failing", "kind"),
    [
        ((50, "operation exceeded time limit"), StoreUnavailable),
        ((16500, "Request rate is large"), StoreUnavailable),
        ((2, "no"), StoreRefused),
    ],
)
def test_it_fails(bench, failing, kind):
    bench.cluster.failing = failing
    for call in bench.calls():
        with pytest.raises(kind, match=failing[1]):
            call()


def test_points_that_were_not_written_are_told(bench):
    bench.add([1, 0, 0, 0])
    bench.cluster.write_errors = {2: (112, "write conflict")}
    with pytest.raises(StoreUnavailable, match=r"did not write 1 points \(code 112: write conflict\)"):
        bench.add([1, 0, 0, 0], [0, 1, 0, 0])
    bench.cluster.write_errors = {2: (121, "failed validation")}
    with pytest.raises(StoreRefused, match="failed validation"):
        bench.add([1, 0, 0, 0], [0, 1, 0, 0])


def test_nobody_listens_or_answers(bench, monkeypatch):
    monkeypatch.setattr(base, "SEARCH_DEADLINE", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    nobody = AtlasStore(StoreSpec("mongodb-atlas", {"connection_string": f"mongodb://127.0.0.1:{port}"}))
    bench.server.mute = True
    for store in (nobody, bench.store):
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match="cannot be reached in time"):
            store.chunks_after(PLACE, 0, 5)
        assert time.monotonic() - started < 5
    nobody._opened.close()


@pytest.mark.parametrize("address", ["127.0.0.1:9", "10.1.2.3", "[::1]:27017", "localhost", "%2Ftmp%2Fmongodb-27017.sock"])
def test_a_private_address_needs_the_operator(settings, address):
    settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": ()})
    store = AtlasStore(StoreSpec("mongodb-atlas", {"connection_string": f"mongodb://{address}"}))
    with pytest.raises(StoreRefused, match="refused") as caught:
        store.chunks_after(PLACE, 0, 5)
    assert isinstance(caught.value.__cause__, AddressRefused)
    store._opened.close()


def test_a_member_that_a_cluster_names_is_not_connected_to(bench, settings):
    """Or whoever runs a server could look around in our network with it."""
    port = int(bench.cluster.address.rpartition(":")[2])
    settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": parse_networks(f"127.0.0.1/32:{port}")})
    with socket.create_server(("127.0.0.1", 0)) as inside:
        inside.settimeout(1)
        bench.cluster.hosts = [f"127.0.0.1:{inside.getsockname()[1]}"]
        bench.add([1, 0, 0, 0])
        assert bench.search(1, 0, 0, 0).rows == [(1, pytest.approx(1))]
        with pytest.raises(TimeoutError):
            inside.accept()
    hosts = bench.store._opened.topology_description.server_descriptions()
    assert sorted(type(host.error).__name__ for host in hosts.values()) == ["AddressRefused", "NoneType"]


@pytest.mark.parametrize(
    ("string", "why"),
    [
        ("http://host", "must begin with"),
        ("mongodb://host/?tlsCAFile=/etc/passwd", "tlsCAFile"),
        ("mongodb://host/?tls=true&tlsCertificateKeyFile=/key", "tlsCertificateKeyFile"),
        ("mongodb://host/?authMechanism=MONGODB-AWS", "user name and password alone"),
        ("mongodb://host/?authMechanism=MONGODB-OIDC", "user name and password alone"),
        ("mongodb://user:p@ss/word@host", "%40"),
    ],
)
def test_connection_strings_that_are_refused(string, why):
    with pytest.raises(StoreRefused, match=why) as caught:
        AtlasStore(StoreSpec("mongodb-atlas", {"connection_string": string})).chunks_after(PLACE, 0, 5)
    assert "p@ss" not in caught.value.message
