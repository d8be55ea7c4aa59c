"""Hits as one text for a model to read: whole passages, each under its citation mark, within one cap. Pure.

The first passage that does not fit ends it, and what was left out is said inside the cap. What the text says is data, not instruction:
whoever puts it into a prompt frames it.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kb.providers.tokens import ESTIMATE
from retrieval.headings import heading_line
from retrieval.hits import DatasetReference, DocumentReference, Hit, Twin
from retrieval.joining import Piece, join_pieces

SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Citation:
    """What a mark such as [1] stands for. `ids` are the citation ids of all the hits in its passage; `also_in` says nearly the same."""

    mark: int
    ids: tuple[str, ...]
    document: DocumentReference
    heading_path: tuple[str, ...]
    page: int | None
    score: float
    dataset: DatasetReference | None = None
    also_in: tuple[Twin, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    text: str
    citations: tuple[Citation, ...]
    omitted: int

    @property
    def is_empty(self) -> bool:
        return not self.citations


def build_context(
    hits: Sequence[Hit], max_chars: int = 20_000, *, max_tokens: int = 0, count: Callable[[str], int] = ESTIMATE.count
) -> Context:
    """Passages in the order of the hits, within both caps; 0 or -1 means no cap. `count` counts tokens as whoever reads them does.

    Passages of one document that touch become one."""
    passages = _merged(hits)
    blocks = [f"[{mark}] {_heading(passage[0])}\n{_text(passage)}" for mark, passage in enumerate(passages, start=1)]

    def fits(text: str) -> bool:
        return (max_chars <= 0 or len(text) <= max_chars) and (max_tokens <= 0 or not text or count(text) <= max_tokens)

    kept = len(blocks)
    if not fits(_assembled(blocks, kept)):
        # Each passage more makes the text longer, so the last number that fits is found by halves: counting tokens takes time.
        kept = bisect_right(range(1, kept), False, key=lambda number: not fits(_assembled(blocks, number)))
    text = _assembled(blocks, kept)
    omitted = len(blocks) - kept
    citations = tuple(_citation(mark, passage) for mark, passage in enumerate(passages[:kept], start=1))
    return Context(text if fits(text) else "", citations, omitted)


def _assembled(blocks: Sequence[str], kept: int) -> str:
    """So many blocks, and a note about the others."""
    omitted = len(blocks) - kept
    note = f"[{omitted} more {'passage' if omitted == 1 else 'passages'} left out for length]"
    return SEPARATOR.join([*blocks[:kept], *([note] if omitted else [])])


def _merged(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Hits grouped into passages, each at the place of its best hit and led by it. A hit may bridge two passages."""
    passages: list[list[Hit]] = []
    for hit in hits:
        touching = [passage for passage in passages if any(_touch(hit, other) for other in passage)]
        if not touching:
            passages.append([hit])
            continue
        touching[0].append(hit)
        for other in touching[1:]:
            touching[0].extend(other)
            passages.remove(other)
    return passages


def _touch(one: Hit, other: Hit) -> bool:
    """Between two neighbouring chunks lies at most white space."""
    if one.document.id != other.document.id:
        return False
    gap = max(one.span.start, other.span.start) - min(one.span.end, other.span.end)
    return gap <= 2


def _text(passage: Sequence[Hit]) -> str:
    if len(passage) == 1:
        return passage[0].text
    first = min(passage, key=lambda hit: hit.span.start)
    # A repeated table header stands before the text of its span; only the first one is wanted.
    header = first.text[: first.header_length]
    return header + join_pieces([Piece(hit.span.start, hit.span.end, _body(hit)) for hit in passage]).text


def _body(hit: Hit) -> str:
    return hit.text[hit.header_length :]


def _heading(hit: Hit) -> str:
    line = heading_line(hit.document.title, hit.heading_path) or "Untitled"
    if hit.document.url:
        line += f" <{hit.document.url}>"
    if hit.dataset is not None:
        line += f", dataset {hit.dataset.name} (id {hit.dataset.id})"
    return f"{line}, page {hit.page}" if hit.page is not None else line


def _citation(mark: int, passage: Sequence[Hit]) -> Citation:
    best = passage[0]
    twins = {twin.document.id: twin for hit in reversed(passage) for twin in hit.also_in}
    ids = tuple(hit.citation for hit in passage)
    return Citation(mark, ids, best.document, best.heading_path, best.page, best.score, best.dataset, tuple(twins.values()))
