"""Random histories of knowledge bases beside a model in plain Python; after each step what answers is what the model says."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from tests.benchmarks.soak.ground import Bounds, Figures, Ground, say
from tests.benchmarks.soak.reading import Key, check_gone, compare
from tests.benchmarks.soak.texts import Author, Text
from tests.fleet import wait_for

KEYS = ("lost", "doubled", "stuck", "wrongly_deleted", "undead", "errors")
STEPS = 25
MODES = ("keyword", "vector", "hybrid")


@dataclass
class History:
    """One knowledge base, and what the model knows of it. `answers` lags behind `files` until a run."""

    ground: Ground
    figures: Figures
    author: Author
    chance: random.Random
    models: list[str]
    id: str = ""
    version: int = 1
    documents: dict[int, dict[str, Any]] = field(default_factory=dict)  # number to configuration
    files: dict[Key, Text] = field(default_factory=dict)
    ids: dict[Key, str] = field(default_factory=dict)
    answers: dict[Key, Text] = field(default_factory=dict)
    gone: list[Text] = field(default_factory=list)
    stale: set[str] = field(default_factory=set)  # sources without a run since the model changed; "" are pushed texts
    trail: list[str] = field(default_factory=list)

    def begin(self) -> None:
        self.id, _ = self.ground.make_knowledge_base(self.models[0], "first", "second")
        self._note(self.ground.client.call("GET", self.path))

    @property
    def path(self) -> str:
        return f"/knowledge-bases/{self.id}"

    @property
    def document(self) -> dict[str, Any]:
        return self.documents[self.version]

    @property
    def sources(self) -> list[str]:
        return [str(UUID(entry["id"])) for entry in self.document["sources"]]

    def _note(self, answer: dict[str, Any]) -> None:
        self.version = answer["version"]
        self.documents[self.version] = answer["document"]

    def steps(self) -> dict[Callable[[], str], int]:
        return {
            self.upload: 5,
            self.replace: 4,
            self.delete: 3,
            self.push: 3,
            self.delete_pushed: 1,
            self.run: 6,
            self.cancel: 2,
            self.purge: 2,
            self.change_chunking: 2,
            self.change_model: 1,
            self.rename: 1,
            self.add_source: 1,
            self.remove_source: 1,
            self.roll_back: 1,
        }

    def step(self) -> None:
        steps = self.steps()
        said = self.chance.choices(list(steps), list(steps.values()))[0]()
        self.trail.append(said)
        before = self.figures.told[:]
        compare(self.ground, self.figures, self.id, self.answers, chance=self.chance, modes=MODES, vectors=not self.stale)
        check_gone(self.ground, self.figures, self.id, self.gone[-20:], chance=self.chance, looks=3)
        if len(self.figures.told) > len(before):
            say(f"  history of {self.id}: {' > '.join(self.trail[-12:])}")

    # --- files -------------------------------------------------------------------------------------------------------

    def upload(self) -> str:
        source = self.chance.choice(self.sources)
        return "upload " + self._store({(source, f"{uuid4().hex[:8]}.md"): self.author.write() for _ in range(self.chance.randint(1, 4))})

    def replace(self) -> str:
        held = sorted(self.files)
        if not held:
            return self.upload()
        key = self.chance.choice(held)
        return "replace " + self._store({key: self.author.revise(self.files[key])})

    def _store(self, texts: dict[Key, Text]) -> str:
        source = next(iter(texts))[0]
        parts = [("files", (name, text.bytes)) for (_, name), text in texts.items()]
        answer = self.ground.client.call("POST", f"{self.path}/sources/{source}/files", files=parts)
        self.figures.count("errors", f"refused: {answer['rejected']}", len(answer["rejected"]))
        self.files |= texts
        self.ids |= {(source, row["file_name"]): row["file_id"] for row in answer["stored"]}
        return str(len(texts))

    def delete(self) -> str:
        if not self.files:
            return "nothing to delete"
        key = self.chance.choice(sorted(self.files))
        self.ground.client.call("DELETE", f"{self.path}/sources/{key[0]}/files/{self.ids[key]}")
        self._forget(key)
        return "delete"

    def _forget(self, key: Key) -> None:
        self.gone += [text for text in (self.files.pop(key, None), self.answers.pop(key, None)) if text]

    # --- pushed texts --------------------------------------------------------------------------------------------------

    def push(self) -> str:
        held = sorted(key for key in self.answers if not key[0])
        key = self.chance.choice(held) if held and self.chance.random() < 0.5 else ("", f"pushed {uuid4().hex[:8]}")
        text = self.author.revise(self.answers[key]) if key in self.answers else self.author.write()
        self._push(key, text)
        return "push"

    def _push(self, key: Key, text: Text) -> None:
        body = {"text": text.markdown, "document_name": key[1], "replace": True}
        started = self.ground.client.call("POST", f"{self.path}/ingest", json=body)
        path = f"{self.path}/ingestions/{started['ingestion_id']}"
        state = wait_for(
            lambda: (now := self.ground.client.call("GET", path))["status"] in ("completed", "failed") and now, seconds=60, what="a push"
        )
        self.figures.count("lost", f"a push failed: {state}", state["status"] != "completed")
        self._settled()
        self.answers[key], self.ids[key] = text, started["document_id"]

    def delete_pushed(self) -> str:
        held = sorted(key for key in self.answers if not key[0])
        if not held:
            return "nothing pushed"
        key = self.chance.choice(held)
        self.ground.client.call("DELETE", f"/documents/{self.ids[key]}")
        self._forget(key)
        return "delete pushed"

    # --- runs ----------------------------------------------------------------------------------------------------------

    def run(self) -> str:
        return self._run(self.chance.choice(self.sources))

    def _run(self, source: str) -> str:
        state = self.ground.run_to_end(self.id, source)
        self._settled()
        if state is None:
            self.figures.count("stuck", f"a run of {source} in {self.id} does not end")
            return "run stuck"
        self.figures.count("lost", f"a run ended {state['status']}: {state['error']}", state["status"] != "succeeded")
        self.answers = {key: text for key, text in self.answers.items() if key[0] != source}
        self.answers |= {key: text for key, text in self.files.items() if key[0] == source}
        self.stale.discard(source)
        return "run"

    def cancel(self) -> str:
        """A run stopped somewhere: each document answers with what it was or what it becomes. A whole run settles it."""
        source = self.chance.choice(self.sources)
        started = self.ground.client.start(self.id, source)
        wait_for(lambda: self.chance.random() < 0.3, seconds=60, what="a moment to cancel in")
        self.ground.client.http.post(f"/runs/{started}/cancel")
        self._settled()
        old = {key: text for key, text in self.answers.items() if key[0] == source}
        for document in self.ground.pages(f"{self.path}/sources/{source}/documents"):
            key = (source, document["name"])
            possible = {text.markdown for text in (old.get(key), self.files.get(key)) if text}
            self.figures.count("undead", f"{key} answers after a cancelled run", bool(document["chunks"]) and not possible)
            self.figures.count("wrongly_deleted", f"{key} is gone after a cancelled run", key in old and not document["chunks"])
        return f"cancel, {self._run(source)}"

    def purge(self) -> str:
        source = self.chance.choice(self.sources)
        reembed = self.chance.random() < 0.5
        self.ground.client.call("DELETE", f"{self.path}/sources/{source}/documents", params={"reembed": str(reembed).lower()})
        return f"purge reembed={reembed}"

    def _settled(self) -> None:
        still = self.ground.settle(self.id)
        self.figures.count("stuck", f"{still} of {self.id}", len(still))

    # --- configuration -------------------------------------------------------------------------------------------------

    def _publish(self, **changes: Any) -> None:
        document = self.document | changes
        self._note(self.ground.client.call("PUT", self.path, json=document, headers={"If-Match": f'"{self.version}"'}))

    def change_chunking(self) -> str:
        target = self.chance.choice((32, 48, 64, 96, 128, 200))
        self._publish(chunking=self.document["chunking"] | {"target_tokens": target})
        return f"chunking {target}"

    def change_model(self) -> str:
        others = [model for model in self.models if model != self.document["embedding_model"]]
        self._publish(embedding_model=self.chance.choice(others))
        return "model, " + self._after_model()

    def _after_model(self) -> str:
        """Files are embedded anew by runs; what was pushed has no list, so it is pushed again."""
        self.stale = set(self.sources)
        for key in sorted(key for key in self.answers if not key[0]):
            self._push(key, self.answers[key])
        return "pushed again"

    def rename(self) -> str:
        entries = [dict(entry) for entry in self.document["sources"]]
        self.chance.choice(entries)["name"] = f"renamed {uuid4().hex[:6]}"
        self._publish(sources=entries)
        return "rename"

    def add_source(self) -> str:
        self._publish(sources=[*self.document["sources"], {"name": f"added {uuid4().hex[:6]}", "type": "upload"}])
        return "add source"

    def remove_source(self) -> str:
        entries = self.document["sources"]
        if len(entries) < 2:
            return self.add_source()
        gone = self.chance.choice(entries)
        self._publish(sources=[entry for entry in entries if entry["id"] != gone["id"]])
        self._drop_removed()
        return "remove source"

    def _drop_removed(self) -> None:
        for key in {key for key in (*self.files, *self.answers) if key[0] and key[0] not in self.sources}:
            self._forget(key)
        self.stale &= {*self.sources, ""}

    def roll_back(self) -> str:
        """The old document again; sources that it had and the present one dropped come back empty under new ids."""
        number = self.chance.choice(sorted(self.documents))
        model = self.document["embedding_model"]
        path = f"{self.path}/rollback"
        self._note(self.ground.client.call("POST", path, json={"to": number}, headers={"If-Match": f'"{self.version}"'}))
        self._drop_removed()
        said = f"roll back to {number}"
        return f"{said}, {self._after_model()}" if self.document["embedding_model"] != model else said


def soak(ground: Ground, figures: Figures, bounds: Bounds, chance: random.Random, *, steps: int = STEPS) -> None:
    models = [ground.register_model() for _ in range(2)]
    author = Author(chance)
    taken = 0
    while bounds.allow(figures.rounds):
        say(f"histories: round {figures.rounds}")
        history = History(ground, figures, author, chance, models)
        history.begin()
        for _ in range(steps):
            if not bounds.allow(figures.rounds):
                break
            history.step()
            taken += 1
        figures.rounds += 1
    figures.notes |= {"steps": taken}
