"""Every test of the contract runs once for each peer; rows stand in Postgres, as they do whatever the store is."""

from collections.abc import Callable, Iterator

import pytest

from config.addresses import parse_networks
from config.registry import Registry
from kb.stores.base import Place, VectorStore
from kb.stores.opening import open_store
from tests.kb.stores.contract.ground import Filled
from tests.kb.stores.contract.peers import PEERS, Peer

PORTS = "127.0.0.1/32:*"


@pytest.fixture(scope="session", params=sorted(PEERS))
def peer(request, tmp_path_factory) -> Iterator[Peer]:
    start = Registry("peer", PEERS).load(request.param)
    with start(tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture(autouse=True)
def _loopback_is_allowed(settings, monkeypatch):
    settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": parse_networks(PORTS), "debug": True})
    monkeypatch.setattr("config.http.environment", lambda: settings.ENV)


@pytest.fixture
def store(peer) -> VectorStore:
    return open_store(peer.spec)


@pytest.fixture
def make_filled(store, make_shelf) -> Iterator[Callable[..., Filled]]:
    made: list[Filled] = []

    def make(name: str, organization=None) -> Filled:
        shelf = make_shelf(name, organization)
        made.append(Filled(store, Place(shelf.organization, shelf.id, shelf.space), shelf))
        return made[-1]

    yield make
    for filled in made:
        store.remove(filled.place, None)


@pytest.fixture
def filled(make_filled) -> Filled:
    return make_filled("Handbook")
