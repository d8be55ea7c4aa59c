"""What the contract is run against: a real store of each type, or the nearest to it that can be had here.

A new store is one entry. Its function is given a folder and yields a `Peer`; `pytest.skip` says what is not installed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kb.stores.base import StoreSpec

PEERS: dict[str, str] = {
    "pgvector": "tests.kb.stores.contract.peers:pgvector",
    "memory": "tests.kb.stores.contract.peers:memory",
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
