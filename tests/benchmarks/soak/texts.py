"""Documents by chance, every sentence of which can be told from every other."""

import random
from dataclasses import dataclass

_PROSE = """pump valve pressure sensor turns opens before after operator checks line oil filter panel reads value when motor starts
    slowly boiler gauge needle points north while the second crew writes down what the night shift measured in the lower hall"""
_WORDS = _PROSE.split()


@dataclass(frozen=True, slots=True)
class Text:
    """Parts of a document; a part is replaced whole, so that the others keep their chunks."""

    serial: int
    parts: tuple[str, ...]

    @property
    def markdown(self) -> str:
        return "\n\n".join((f"# Document {self.serial}", *self.parts)) + "\n"

    @property
    def bytes(self) -> bytes:
        return self.markdown.encode()


class Author:
    """Writes documents from one source of chance; no mark is used twice."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.serial = 0
        self.mark = 0

    def write(self, *, parts: tuple[int, int] = (1, 5)) -> Text:
        self.serial += 1
        return Text(self.serial, tuple(self._part() for _ in range(self.chance.randint(*parts))))

    def revise(self, text: Text) -> Text:
        """The same document with a part changed, added or taken away."""
        parts = list(text.parts)
        place = self.chance.randrange(len(parts))
        match self.chance.randrange(3):
            case 0 if len(parts) > 1:
                del parts[place]
            case 1:
                parts.insert(place, self._part())
            case _:
                parts[place] = self._part()
        return Text(text.serial, tuple(parts))

    def _part(self) -> str:
        self.mark += 1
        sentences = [self._sentence(f"mark{self.mark}x{number}") for number in range(self.chance.randint(2, 8))]
        return f"## Part {self.mark}\n\n" + " ".join(sentences)

    def _sentence(self, mark: str) -> str:
        words = [self.chance.choice(_WORDS) for _ in range(self.chance.randint(6, 14))]
        words.insert(self.chance.randrange(len(words)), mark)
        return " ".join(words).capitalize() + "."


def marks(markdown: str) -> list[str]:
    """The marks of a text, in their order."""
    return [word.strip(".").lower() for word in markdown.split() if word.lower().startswith("mark")]


def squeezed(text: str) -> str:
    return "".join(text.split())
