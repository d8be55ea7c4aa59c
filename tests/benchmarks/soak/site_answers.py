"""What answers of a crawled site, beside what is believed of it; each look narrows the belief."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.benchmarks.soak.ground import Figures
from tests.benchmarks.soak.site_hands import Standing
from tests.benchmarks.soak.site_truth import NOTHING, Belief
from tests.benchmarks.soak.texts import Text, marks


def path_of(url: str) -> str:
    """What an address is known by here, however it is spelled."""
    return urlsplit(url).path.rstrip("/") or "/"


@dataclass
class Answers:
    """`beliefs` by path; `answering` is what the last look found. `free` paths may answer or not: pages that are none of the site's own."""

    figures: Figures
    where: str
    free: frozenset[str] = frozenset()
    beliefs: dict[str, Belief] = field(default_factory=dict)
    answering: dict[str, Text] = field(default_factory=dict)
    gone: list[Text] = field(default_factory=list)

    def of(self, path: str) -> Belief:
        return self.beliefs.get(path, NOTHING)

    def observe(self, standing: Iterable[Standing]) -> None:
        """Look at every document that answers; count what may not be."""
        found: dict[str, list[Standing]] = {}
        for document in standing:
            found.setdefault(path_of(document.url), []).append(document)
        for path in sorted(set(found) - set(self.beliefs) - self.free):
            self.figures.count("undead", f"{path} of {self.where} answers and is no page")
        now: dict[str, Text] = {}
        for path in self.beliefs:
            documents = found.get(path, [])
            self.figures.count("doubled", f"{len(documents)} documents of {path} answer in {self.where}", max(0, len(documents) - 1))
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
            self.figures.count(key, f"{path} of {self.where} does not answer, and must: {_shown(belief)}")
        self.beliefs[path] = frozenset(state for state in belief if state.text is None) or NOTHING

    def _observe(self, path: str, document: Standing) -> Text | None:
        belief, said = self.of(path), document.marks
        texts = {state.text for state in belief if state.text}
        text = next((text for text in texts if Counter(marks(text.markdown)) == said), None)
        if text is None:
            self._tell_difference(f"{path} of {self.where} ({document.about})", said, texts)
            return None
        self.beliefs[path] = frozenset(state for state in belief if state.text == text)
        return text

    def _tell_difference(self, where: str, said: Counter[str], texts: set[Text]) -> None:
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


def _shown(belief: Belief) -> str:
    return ", ".join(f"document {state.text.serial if state.text else None} after {state.misses} misses" for state in belief)
