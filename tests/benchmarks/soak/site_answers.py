"""What answers of a crawled site, beside what is believed of it; each look narrows the belief."""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.benchmarks.soak.ground import Figures, Ground
from tests.benchmarks.soak.reading import check_gone, check_search, check_tables, chunks_of
from tests.benchmarks.soak.site_truth import NOTHING, Belief
from tests.benchmarks.soak.texts import Text, marks


def path_of(url: str) -> str:
    """What an address is known by here, however it is spelled."""
    return urlsplit(url).path.rstrip("/") or "/"


@dataclass
class Answers:
    """`beliefs` by path; `answering` is what the last look found. `free` paths may answer or not: pages that are none of the site's own."""

    ground: Ground
    figures: Figures
    knowledge_base: str
    source: str
    free: frozenset[str] = frozenset()
    beliefs: dict[str, Belief] = field(default_factory=dict)
    answering: dict[str, Text] = field(default_factory=dict)
    gone: list[Text] = field(default_factory=list)

    def of(self, path: str) -> Belief:
        return self.beliefs.get(path, NOTHING)

    def observe(self) -> None:
        """Look at every document; count what may not be."""
        found: dict[str, list[dict[str, Any]]] = {}
        for document in self.ground.pages(f"/knowledge-bases/{self.knowledge_base}/sources/{self.source}/documents"):
            if document["chunks"]:
                found.setdefault(path_of(document["url"] or document["name"]), []).append(document)
        for path in sorted(set(found) - set(self.beliefs) - self.free):
            self.figures.count("undead", f"{path} of {self.knowledge_base} answers and is no page")
        now: dict[str, Text] = {}
        for path in self.beliefs:
            documents = found.get(path, [])
            self.figures.count(
                "doubled", f"{len(documents)} documents of {path} answer in {self.knowledge_base}", max(0, len(documents) - 1)
            )
            text = self._observe(path, documents[0]) if documents else self._observe_nothing(path)
            if text:
                now[path] = text
        alive = {mark for text in now.values() for mark in marks(text.markdown)}
        went = [text for path, text in self.answering.items() if path not in now]
        self.gone = [text for text in self.gone + went if not alive & set(marks(text.markdown))][-20:]
        self.answering = now

    def _observe_nothing(self, path: str) -> None:
        belief = self.of(path)
        if all(state.text for state in belief):
            key = "wrongly_deleted" if path in self.answering else "lost"
            self.figures.count(key, f"{path} of {self.knowledge_base} does not answer, and must: {_shown(belief)}")
        self.beliefs[path] = frozenset(state for state in belief if state.text is None) or NOTHING

    def _observe(self, path: str, document: dict[str, Any]) -> Text | None:
        belief = self.of(path)
        said = Counter(mark for chunk in chunks_of(self.ground, document["id"]) for mark in marks(chunk["text"]))
        texts = {state.text for state in belief if state.text}
        text = next((text for text in texts if Counter(marks(text.markdown)) == said), None)
        if text is None:
            self._tell_difference(path, said, texts, document)
            return None
        self.beliefs[path] = frozenset(state for state in belief if state.text == text)
        return text

    def _tell_difference(self, path: str, said: Counter[str], texts: set[Text], document: dict[str, Any]) -> None:
        where = f"{path} of {self.knowledge_base} ({document['state']}, missed {document['missed_runs']}, error {document['error']!r})"
        if not texts:
            self.figures.count("undead", f"{where} answers and should be gone")
            return
        wanted = min(
            (Counter(marks(text.markdown)) for text in texts), key=lambda wanted: (wanted - said).total() + (said - wanted).total()
        )
        surplus = said - wanted
        self.figures.count("lost", f"{where} lacks {sorted(wanted - said)[:5]}", bool(wanted - said))
        self.figures.count("undead", f"{where} says {sorted(set(surplus) - set(wanted))[:5]}", bool(set(surplus) - set(wanted)))
        self.figures.count("doubled", f"{where} says {sorted(set(surplus) & set(wanted))[:5]} twice", bool(set(surplus) & set(wanted)))

    def check(self, chance: random.Random) -> None:
        """Rows and searches agree with the documents that answer."""
        check_tables(self.ground, self.figures, self.knowledge_base)
        expected = {("", path): text for path, text in self.answering.items()}
        if len(set(expected.values())) == len(expected):  # while a page that moved answers at both addresses, its words are found twice
            check_search(self.ground, self.figures, self.knowledge_base, expected, chance=chance, looks=3)
        check_gone(self.ground, self.figures, self.knowledge_base, self.gone, chance=chance, looks=2)


def _shown(belief: Belief) -> str:
    return ", ".join(f"document {state.text.serial if state.text else None} after {state.misses} misses" for state in belief)
