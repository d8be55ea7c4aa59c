"""What every soak stands on: an installation, a client, looks into its rows, and the figures that it reports."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx

from tests.client import Client
from tests.fleet import QUICK, Fleet, look_past_rules, wait_for
from tests.installation import installation
from tests.servers.openai_server import ScriptedServer

ZEROES = ("lost", "doubled", "stuck", "paid_twice", "wrongly_deleted", "undead", "leaked", "errors", "failed", "empty", "mixed", "slow")
BATCH = 8
SETTLE_SECONDS = 120
# Pieces do not overlap, so that the chunks of a document, one after another, are the document.
CHUNKING: Mapping[str, Any] = {"target_tokens": 64, "overlap": 0, "min_chars": 20}


@dataclass(frozen=True, slots=True)
class Bounds:
    """A soak ends after so many rounds or seconds, whichever comes first, but not before its first round."""

    rounds: int
    seconds: float
    started: float = field(default_factory=time.monotonic)

    def allow(self, done: int) -> bool:
        return done < self.rounds and (not done or time.monotonic() - self.started < self.seconds)


@dataclass
class Figures:
    """The line of one soak. Whatever is counted is also said on stderr, with what is needed to look into it."""

    name: str
    counts: dict[str, int]
    rounds: int = 0
    notes: dict[str, Any] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, *keys: str) -> "Figures":
        return cls(name, dict.fromkeys(keys, 0))

    def count(self, key: str, what: str, number: int = 1) -> None:
        if number:
            self.counts[key] = self.counts.get(key, 0) + int(number)
            self.told.append(f"{key}: {what}")
            say(f"{self.name}: {key} +{int(number)}: {what}"[:1200])

    @property
    def is_clean(self) -> bool:
        return not any(self.counts.get(key) for key in ZEROES)

    def line(self, seconds: float) -> dict[str, Any]:
        return {"bench": "soak", "name": self.name, "rounds": self.rounds, **self.counts, "seconds": round(seconds, 1), **self.notes}


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@dataclass
class Ground:
    """A fleet and what may be done to it. `home` is set when the services are its own and may be killed."""

    fleet: Fleet
    client: Client
    environment: Mapping[str, str]
    home: Path | None = None

    def rows(self, statement: str, parameters: Any = None) -> list[tuple]:
        """What the database holds, seen past every access rule."""
        with look_past_rules(self.environment, autocommit=True, connect_timeout=10) as connection:
            return connection.execute(statement, parameters).fetchall()

    def value(self, statement: str, parameters: Any = None) -> Any:
        return self.rows(statement, parameters)[0][0]

    def register_model(self, provider: ScriptedServer | None = None, *, dimension: int = 384) -> str:
        """The name of a new model: of the scripted provider, else one that needs none."""
        name = f"soak-{uuid4().hex[:8]}"
        body: dict[str, Any] = {"name": name, "dimension": dimension, "max_input_tokens": 256}
        if provider is None:
            body |= {"provider": "hashing", "model": name}
        else:
            body |= {
                "provider": "openai",
                "model": "scripted",
                "endpoint": provider.endpoint,
                "parameters": {"batch_texts": BATCH, "timeout": 2},
            }
        self.client.call("POST", "/embedding-models", json=body)
        return name

    def make_knowledge_base(self, model: str, *sources: str, **document: Any) -> tuple[str, dict[str, str]]:
        """(id of a new knowledge base, name of each of its upload sources to its id)."""
        entries = [{"name": name, "type": "upload", "upload": {"max_files": 10_000}} for name in sources or ("files",)]
        body = {"name": f"soak {uuid4().hex[:10]}", "embedding_model": model, "chunking": CHUNKING, "sources": entries} | document
        made = self.client.call("POST", "/knowledge-bases", json=body)
        return made["id"], {entry["name"]: str(UUID(entry["id"])) for entry in made["document"]["sources"]}

    def open_runs(self, *knowledge_bases: str) -> list[tuple]:
        return self.rows(
            "SELECT id, kind, status FROM ingestion_ingestionrun WHERE finished_at IS NULL AND knowledge_base_id = ANY(%s::uuid[])",
            [list(knowledge_bases)],
        )

    def settle(self, *knowledge_bases: str, seconds: float = SETTLE_SECONDS) -> list[tuple]:
        """Wait until no run is open; the runs that still are, if any."""
        deadline = time.monotonic() + seconds
        while (still := self.open_runs(*knowledge_bases)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return still

    def run_to_end(self, knowledge_base: str, source: str, *, seconds: float = SETTLE_SECONDS) -> dict[str, Any] | None:
        """A run that began now, once it has ended; None if it does not. A run in the way is waited for first."""
        deadline = time.monotonic() + seconds
        path = f"/knowledge-bases/{knowledge_base}/sources/{source}/run"
        while time.monotonic() < deadline:
            answer = self.client.http.post(path)
            if answer.status_code == 202:
                try:
                    return self.client.finish(answer.json()["run_id"], seconds=seconds)
                except AssertionError:
                    return None
            time.sleep(0.2)
        return None

    def persist(self, method: str, path: str, *, accept: tuple[int, ...] = (), seconds: float = 180, **options: Any) -> httpx.Response:
        """Ask again until the answer is final, as a patient caller does: no answer and 503 are not."""

        def final() -> httpx.Response | None:
            try:
                answer = self.client.http.request(method, path, **options)
            except httpx.HTTPError:
                return None
            if answer.is_success or answer.status_code in accept:
                return answer
            assert answer.status_code in (503, 409), f"{method} {path} -> {answer.status_code}: {answer.text[:500]}"
            return None

        return wait_for(final, seconds=seconds, what=f"a final answer to {method} {path}", every=0.3)

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Every item of a paged list."""
        cursor = None
        while True:
            page = self.client.call("GET", path, params={"limit": 100} | ({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return


@contextmanager
def own_ground(**settings: str) -> Iterator[Ground]:
    """An installation of the soak's own, whose services may die too."""
    with installation(**{**QUICK, "LECTERN_EMBED_THREADS": "1", **settings}) as installed:
        home = Path(installed.environment["LECTERN_HOME"])
        yield Ground(installed.fleet, installed.client, installed.environment, home)
