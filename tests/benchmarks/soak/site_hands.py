"""What a site history does with the product: through the API of a fleet here; tests also have hands that work in their own process."""

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID, uuid4

from tests.benchmarks.soak.ground import Figures, Ground
from tests.benchmarks.soak.reading import check_gone, check_search, check_tables, chunks_of
from tests.benchmarks.soak.texts import Text, marks
from tests.fleet import wait_for

CHUNKING = {"target_tokens": 64, "overlap": 0, "min_chars": 20}


@dataclass(frozen=True, slots=True)
class Standing:
    """A document that answers: the marks of its chunks, and what to say of it."""

    url: str
    marks: Counter[str]
    about: str


class Hands(Protocol):
    """One knowledge base with one web source. `document` is its current configuration."""

    document: dict[str, Any]

    def publish(self, document: dict[str, Any]) -> None: ...

    def purge(self, *, reembed: bool) -> None: ...

    def run(self, *, begun: Callable[[], bool], cancel: bool, crash: Sequence[str]) -> Mapping[str, Any] | None:
        """The run once it is closed (`id, status, stop_reason, error`); None if it does not end. `begun` tells when to cancel or kill."""

    def answer_brake(self, run_id: str, *, confirm: bool) -> None: ...

    def look(self) -> Iterable[Standing]: ...

    def check(self, answering: Mapping[str, Text], gone: list[Text], chance: random.Random) -> None:
        """Rows and searches agree with what answers."""


def configuration(start_url: str, *, timeout: int, **settings: Any) -> dict[str, Any]:
    web = {"start_url": start_url, "request_delay_ms": 0, "timeout_seconds": timeout, "max_depth": 3}
    source = {"name": "site", "type": "web", "web": web, "settings": settings}
    return {"name": f"site {uuid4().hex[:10]}", "chunking": CHUNKING, "sources": [source]}


@dataclass
class FleetHands:
    ground: Ground
    figures: Figures
    id: str
    version: int
    document: dict[str, Any]
    source: str = field(init=False)

    def __post_init__(self) -> None:
        self.source = str(UUID(self.document["sources"][0]["id"]))

    @classmethod
    def make(cls, ground: Ground, figures: Figures, document: dict[str, Any]) -> "FleetHands":
        made = ground.client.call("POST", "/knowledge-bases", json=document)
        return cls(ground, figures, made["id"], made["version"], made["document"])

    def publish(self, document: dict[str, Any]) -> None:
        headers = {"If-Match": f'"{self.version}"'}
        made = self.ground.client.call("PUT", f"/knowledge-bases/{self.id}", json=document, headers=headers)
        self.version, self.document = made["version"], made["document"]

    def purge(self, *, reembed: bool) -> None:
        path = f"/knowledge-bases/{self.id}/sources/{self.source}/documents"
        self.ground.client.call("DELETE", path, params={"reembed": str(reembed).lower()})

    def run(self, *, begun: Callable[[], bool], cancel: bool, crash: Sequence[str]) -> Mapping[str, Any] | None:
        run = self.ground.client.start(self.id, self.source)
        if cancel or crash:
            with contextlib.suppress(AssertionError):  # a site that is away is asked for nothing
                wait_for(begun, seconds=3, what="requests", every=0.01)
        if cancel:
            self.ground.client.http.post(f"/runs/{run}/cancel")
        for name in crash:
            self.ground.fleet.kill(name)
        if crash:
            self.ground.fleet.start(*crash)
        try:
            state = self.ground.client.finish(run, seconds=180)
        except AssertionError:
            return None
        self._settle()
        return state

    def _settle(self) -> None:
        still = self.ground.settle(self.id)
        self.figures.count("stuck", f"{still} of {self.id}", len(still))

    def answer_brake(self, run_id: str, *, confirm: bool) -> None:
        # Unasked: what is still linked nowhere and given all the same would stay, and what is told here is by what was planned.
        self.ground.client.call("POST", f"/runs/{run_id}/{'confirm?unasked=true' if confirm else 'reject'}")
        self._settle()

    def look(self) -> Iterable[Standing]:
        for row in self.ground.pages(f"/knowledge-bases/{self.id}/sources/{self.source}/documents"):
            if row["chunks"]:
                said = Counter(mark for chunk in chunks_of(self.ground, row["id"]) for mark in marks(chunk["text"]))
                yield Standing(row["url"] or row["name"], said, f"{row['state']}, missed {row['missed_runs']}, error {row['error']!r}")

    def check(self, answering: Mapping[str, Text], gone: list[Text], chance: random.Random) -> None:
        check_tables(self.ground, self.figures, self.id)
        expected = {("", path): text for path, text in answering.items()}
        if len(set(expected.values())) == len(expected):  # while a page that moved answers at both addresses, its words are found twice
            check_search(self.ground, self.figures, self.id, expected, chance=chance, looks=3)
        check_gone(self.ground, self.figures, self.id, gone, chance=chance, looks=2)
