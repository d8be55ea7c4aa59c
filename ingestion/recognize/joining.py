"""Parts that were recognized, put together to one document: Markdown, a span for each page, and what is said of how it was read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ingestion.extract.base import PageSpan
from ingestion.extract.encodings import clean

SEAM = "\n\n"
UNSURE_BELOW = 0.5
SHOWN_PAGES = 20
PRINT = ("page", "picture")
_NAMES = {"page": "Page", "picture": "Picture", "description": "The description of picture", "speech": "Part"}


@dataclass(frozen=True, slots=True)
class ReadPart:
    """A part with what became of it: `text`, or an `error` that is the content's fault or not (`retires`)."""

    kind: str
    position: int
    page: int | None = None
    start: float | None = None
    end: float | None = None
    text: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    retires: bool = False

    @property
    def is_recognized(self) -> bool:
        """By an engine; text that a page had already has no details."""
        return bool(self.details)


@dataclass(frozen=True, slots=True)
class Joined:
    markdown: str
    pages: list[PageSpan]
    metadata: dict[str, Any]
    warnings: list[str]


def join(parts: Sequence[ReadPart]) -> Joined:
    """One document of parts in their order. Its Markdown is empty where nothing was recognized in any of them."""
    pieces: list[str] = []
    spans: list[PageSpan] = []
    length = 0
    for part in parts:
        text = clean(part.text)[0].strip()
        if not text:
            continue
        start = length + (len(SEAM) if pieces else 0)
        pieces.append(text)
        length = start + len(text)
        if part.page is None:
            continue
        if spans and spans[-1].page == part.page:
            spans[-1] = PageSpan(part.page, spans[-1].start, length)
        else:
            spans.append(PageSpan(part.page, start, length))
    return Joined(SEAM.join(pieces), spans, _metadata(parts), _warnings(parts))


def _metadata(parts: Sequence[ReadPart]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    printed = [part for part in parts if part.kind in PRINT and part.is_recognized]
    if printed:
        said |= {"ocr": True, "ocr_engine": printed[0].details["engine"], "ocr_pages": len(printed)}
        said |= _confidence("ocr_confidence", printed)
        if turned := [part.page for part in printed if part.details.get("rotation")]:
            said["ocr_rotated_pages"] = turned[:SHOWN_PAGES]
    if described := [part for part in parts if part.kind == "description" and part.is_recognized]:
        said["described_by"] = described[0].details["engine"]
    if spoken := [part for part in parts if part.kind == "speech" and part.is_recognized]:
        said |= {"transcribed": True, "transcribed_by": spoken[0].details["engine"]} | _confidence("transcription_confidence", spoken)
    return said


def _confidence(name: str, parts: Sequence[ReadPart]) -> dict[str, float]:
    """The mean, weighted by length; absent where the engine tells none."""
    told = [(part.details["confidence"], len(part.text)) for part in parts if part.details.get("confidence") is not None and part.text]
    weight = sum(length for _, length in told)
    return {name: round(sum(value * length for value, length in told) / weight, 3)} if weight else {}


def _warnings(parts: Sequence[ReadPart]) -> list[str]:
    failed = [part for part in parts if part.error]
    said = [f"{_name(part)} is missing: {part.error}" for part in failed[:SHOWN_PAGES]]
    if len(failed) > SHOWN_PAGES:
        said.append(f"{len(failed) - SHOWN_PAGES} more parts are missing.")
    unsure = [part for part in parts if part.text and (part.details.get("confidence") or 1.0) < UNSURE_BELOW]
    if unsure:
        listed = ", ".join(str(_number(part)) for part in unsure[:SHOWN_PAGES]) + (" …" if len(unsure) > SHOWN_PAGES else "")
        said.append(f"The text was recognized with little confidence (page or part {listed}): expect errors.")
    return said


def _name(part: ReadPart) -> str:
    return f"{_NAMES[part.kind]} {_number(part)}"


def _number(part: ReadPart) -> int:
    return part.page if part.page is not None else part.position + 1
