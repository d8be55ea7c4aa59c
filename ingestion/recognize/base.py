"""What is recognized of a part of a file, and by what. Everything here crosses a pipe as JSON, so it stays plain."""

from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, Self

from PIL import Image


@dataclass(frozen=True, slots=True)
class Cue:
    """text[start:end] was said from `begin` to `finish`, in seconds of the recording."""

    start: int
    end: int
    begin: float
    finish: float


@dataclass(frozen=True, slots=True)
class Recognized:
    """`text` is Markdown, empty where nothing was recognized. `confidence` is 0 to 1, by the engine's own measure and weighted by words;
    None where it tells none."""

    text: str
    engine: str
    confidence: float | None = None
    rotation: int = 0
    """Degrees clockwise by which the page was turned to be read."""
    language: str = ""
    cues: list[Cue] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**{**value, "cues": [Cue(**cue) for cue in value["cues"]]})


@dataclass(frozen=True, slots=True)
class Line:
    """A line of print as an engine found it; lines of one `block` belong together. `confidence` is 0 to 1."""

    text: str
    block: int
    confidence: float
    words: int


class PageReader(Protocol):
    """Reads print off a picture. Made once in a child process and used for page after page."""

    name: str

    def turned(self, picture: Image.Image) -> int | None:
        """Degrees clockwise by which the picture has to be turned to stand upright; None where that cannot be told."""
        ...

    def lines(self, picture: Image.Image) -> list[Line]:
        """Its lines in reading order, as it stands."""
        ...
