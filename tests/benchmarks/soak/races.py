"""Many people at one source at once: one run at a time, no 500, no deadlock, no item without a verdict, and the last word of each holds."""

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from uuid import uuid4

import httpx

from tests.benchmarks.soak.ground import Bounds, Figures, Ground, say
from tests.benchmarks.soak.reading import Key, check_gone, compare
from tests.benchmarks.soak.texts import Author, Text, marks

KEYS = ("lost", "doubled", "stuck", "wrongly_deleted", "undead", "errors")
THREADS = 8
ROUND_SECONDS = 15.0
_TWO_RUNS = """
    SELECT source_id, count(*) FROM ingestion_ingestionrun
     WHERE finished_at IS NULL AND kind <> 'push' GROUP BY source_id HAVING count(*) > 1
"""
_NO_VERDICT = """
    SELECT count(*) FROM ingestion_runitem item JOIN ingestion_ingestionrun run ON run.id = item.run_id
     WHERE run.finished_at IS NOT NULL AND item.verdict = '' AND run.knowledge_base_id = %s
"""


@dataclass
class Person:
    """A thread with files and texts of its own; runs, cancelling and purges are everybody's."""

    ground: Ground
    knowledge_base: str
    source: str
    author: Author
    chance: random.Random
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    texts: dict[Key, Text] = field(default_factory=dict)
    ids: dict[Key, str] = field(default_factory=dict)
    gone: list[Text] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/knowledge-bases/{self.knowledge_base}"

    def work(self, until: float) -> None:
        acts = {self.upload: 5, self.delete: 3, self.push: 4, self.run: 4, self.cancel: 2, self.purge: 1, self.look: 2}
        while time.monotonic() < until:
            act = self.chance.choices(list(acts), list(acts.values()))[0]
            try:
                act()
            except httpx.HTTPError as error:
                self.refused.append(f"{act.__name__}: {type(error).__name__}: {error}")

    def ask(self, what: str, method: str, path: str, *, accept: tuple[int, ...] = (), **options: object) -> httpx.Response | None:
        """The answer if it is a success; what is neither that nor expected is a finding. 503 is asked again."""
        for _ in range(50):
            answer = self.ground.client.http.request(method, path, **options)
            self.statuses[what, answer.status_code] += 1
            if answer.is_success:
                return answer
            if answer.status_code != 503:
                if answer.status_code not in accept:
                    self.refused.append(f"{what}: {answer.status_code}: {answer.text[:300]}")
                return None
            time.sleep(0.2)
        self.refused.append(f"{what}: 503 for ever: {answer.text[:300]}")
        return None

    def upload(self) -> None:
        held = sorted(key for key in self.texts if key[0])
        if held and self.chance.random() < 0.5:
            key = self.chance.choice(held)
            text = self.author.revise(self.texts[key])
        else:
            key, text = (self.source, f"{uuid4().hex[:8]}.md"), self.author.write(parts=(1, 3))
        answer = self.ask("upload", "POST", f"{self.path}/sources/{self.source}/files", files=[("files", (key[1], text.bytes))])
        if answer is not None:
            self.texts[key], self.ids[key] = text, answer.json()["stored"][0]["file_id"]

    def delete(self) -> None:
        if self.texts:
            key = self.chance.choice(sorted(self.texts))
            path = f"{self.path}/sources/{key[0]}/files/{self.ids[key]}" if key[0] else f"/documents/{self.ids[key]}"
            if self.ask("delete", "DELETE", path) is not None:
                self.gone.append(self.texts.pop(key))

    def push(self) -> None:
        held = sorted(key for key in self.texts if not key[0])
        key = self.chance.choice(held) if held and self.chance.random() < 0.7 else ("", uuid4().hex[:8])
        text = self.author.revise(self.texts[key]) if key in self.texts else self.author.write(parts=(1, 3))
        body = {"text": text.markdown, "document_name": key[1], "replace": True}
        answer = self.ask("push", "POST", f"{self.path}/ingest", json=body)
        if answer is not None:
            self.texts[key], self.ids[key] = text, answer.json()["document_id"]

    def run(self) -> None:
        self.ask("run", "POST", f"{self.path}/sources/{self.source}/run", accept=(409,))

    def cancel(self) -> None:
        runs = self.ask("runs", "GET", f"{self.path}/sources/{self.source}/runs", params={"limit": 1})
        for row in runs.json()["items"] if runs else []:
            if row["finished_at"] is None:
                self.ask("cancel", "POST", f"/runs/{row['id']}/cancel", accept=(409,))

    def purge(self) -> None:
        self.ask("purge", "DELETE", f"{self.path}/sources/{self.source}/documents", params={"reembed": "true"}, accept=(409,))

    def look(self) -> None:
        if self.gone:
            mark = self.chance.choice(marks(self.gone[-1].markdown))
            answer = self.ask(
                "search", "POST", "/search", json={"query": mark, "knowledge_bases": [self.knowledge_base], "mode": "keyword"}
            )
            if answer and any(mark in marks(hit["text"]) for hit in answer.json()["hits"]):
                self.refused.append(f"search: {mark} of a deleted text is found")
        self.ask("documents", "GET", f"{self.path}/documents", params={"limit": 20})


def soak(
    ground: Ground, figures: Figures, bounds: Bounds, chance: random.Random, *, threads: int = THREADS, round_seconds: float = ROUND_SECONDS
) -> None:
    model = ground.register_model()
    author = Author(chance)
    statuses: Counter[str] = Counter()
    deadlocks = _deadlocks(ground)
    while bounds.allow(figures.rounds):
        say(f"races: round {figures.rounds}")
        knowledge_base, sources = ground.make_knowledge_base(model)
        source = sources["files"]
        people = [Person(ground, knowledge_base, source, author, random.Random(chance.random())) for _ in range(threads)]
        _together(ground, figures, people, round_seconds)
        for person in people:
            for what in person.refused:
                figures.count("errors", what)
            statuses.update({f"{what} {status}": number for (what, status), number in person.statuses.items()})
        _conclude(ground, figures, knowledge_base, source, people, chance)
        figures.rounds += 1
    time.sleep(1.5)  # statistics are told with a delay
    found = _deadlocks(ground) - deadlocks
    figures.count("errors", f"{found} deadlocks", found)
    figures.notes |= {"deadlocks": found, "statuses": dict(sorted(statuses.items()))}


def _deadlocks(ground: Ground) -> int:
    return ground.value("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")


def _together(ground: Ground, figures: Figures, people: list[Person], seconds: float) -> None:
    until = time.monotonic() + seconds
    workers = [threading.Thread(target=person.work, args=(until,), daemon=True) for person in people]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers) and time.monotonic() < until + 120:
        two = ground.rows(_TWO_RUNS)
        figures.count("doubled", f"two open runs: {two}", len(two))
        time.sleep(0.25)
    figures.count("stuck", "threads that do not end", sum(worker.is_alive() for worker in workers))


def _conclude(ground: Ground, figures: Figures, knowledge_base: str, source: str, people: list[Person], chance: random.Random) -> None:
    """Everything comes to rest, one more run takes it all in, and each person's last word stands."""
    still = ground.settle(knowledge_base)
    figures.count("stuck", f"open runs {still}", len(still))
    state = ground.run_to_end(knowledge_base, source)
    figures.count("stuck", "the last run does not end", state is None)
    if state and state["status"] != "succeeded":
        figures.count("lost", f"the last run ended {state['status']}: {state['error']}")
    still = ground.settle(knowledge_base)
    figures.count("stuck", f"open runs after the last {still}", len(still))
    deadline = time.monotonic() + 20
    while (open_items := ground.value(_NO_VERDICT, [knowledge_base])) and time.monotonic() < deadline:
        time.sleep(0.5)
    figures.count("stuck", f"{open_items} items of closed runs have no verdict", open_items)
    expected = {key: text for person in people for key, text in person.texts.items()}
    compare(ground, figures, knowledge_base, expected, chance=chance)
    check_gone(ground, figures, knowledge_base, [text for person in people for text in person.gone], chance=chance, looks=12)
