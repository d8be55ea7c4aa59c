"""What the contract is run against: a real store of each type, or the nearest to it that can be had here.

A new store is one entry. Its function is given a folder and yields a `Peer`; `pytest.skip` says what is not installed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from kb.stores.base import StoreSpec
from tests.servers import chroma_process, search_server

PEERS: dict[str, str] = {
    "pgvector": "tests.kb.stores.contract.peers:pgvector",
    "memory": "tests.kb.stores.contract.peers:memory",
    "qdrant": "tests.kb.stores.contract.peers:qdrant",
    "chroma": "tests.kb.stores.contract.peers:chroma",
    "elasticsearch": "tests.kb.stores.contract.peers:elasticsearch",
    "mongodb-atlas": "tests.kb.stores.contract.peers:mongodb_atlas",
    "opensearch": "tests.kb.stores.contract.peers:opensearch",
}


@dataclass(frozen=True, slots=True)
class Peer:
    """`spec` opens it. `elsewhere` gives the spec of the same store at another host and port, for a store that is reached by HTTP."""

    spec: StoreSpec
    elsewhere: Callable[[str, int], StoreSpec] | None = None


@contextmanager
def pgvector(folder: Path) -> Iterator[Peer]:
    yield Peer(StoreSpec("pgvector"))


@contextmanager
def memory(folder: Path) -> Iterator[Peer]:
    yield Peer(StoreSpec("memory"))


KEY = "sesame-open-wide"
NEEDS = "needs requirements/stores.txt"


@contextmanager
def qdrant(folder: Path) -> Iterator[Peer]:
    if find_spec("qdrant_client") is None:
        pytest.skip(NEEDS)
    from tests.servers import qdrant_server

    def at(host: str, port: int) -> StoreSpec:
        return StoreSpec("qdrant", {"host": host, "port": port, "collection_name": "contract", "api_key": KEY})

    with qdrant_server.serving(KEY) as server:
        yield Peer(at("127.0.0.1", server.server_port), at)


@contextmanager
def chroma(folder: Path) -> Iterator[Peer]:
    if chroma_process.chroma_program() is None:
        pytest.skip(NEEDS)

    def at(host: str, port: int) -> StoreSpec:
        return StoreSpec("chroma", {"base_url": f"http://{host}:{port}", "collection_name": "contract"})

    with chroma_process.serving(folder) as port:
        yield Peer(at("127.0.0.1", port), at)


@contextmanager
def elasticsearch(folder: Path) -> Iterator[Peer]:
    def at(host: str, port: int) -> StoreSpec:
        return StoreSpec("elasticsearch", {"server_url": f"http://{host}:{port}/", "index_name": "contract", "api_key": KEY})

    with search_server.serving(search_server.ELASTICSEARCH, api_key=KEY) as server:
        yield Peer(at("127.0.0.1", server.server_port), at)


@contextmanager
def opensearch(folder: Path) -> Iterator[Peer]:
    def at(host: str, port: int) -> StoreSpec:
        account = {"user_name": "lectern", "password": KEY}
        return StoreSpec("elasticsearch", {"server_url": f"http://{host}:{port}", "index_name": "contract", **account})

    with search_server.serving(search_server.OPENSEARCH, user=("lectern", KEY)) as server:
        yield Peer(at("127.0.0.1", server.server_port), at)


@contextmanager
def mongodb_atlas(folder: Path) -> Iterator[Peer]:
    if find_spec("pymongo") is None:
        pytest.skip("needs requirements/mongodb.txt")
    from tests.servers import mongo_server

    with mongo_server.serving(("lectern", KEY)) as server:
        string = f"mongodb://lectern:{KEY}@{server.cluster.address}/?authSource=admin"
        yield Peer(StoreSpec("mongodb-atlas", {"connection_string": string, "collection_name": "contract"}))
