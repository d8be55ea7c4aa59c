"""Hits as one text for a model to read: whole passages, each under its citation mark, within one cap. Pure.

The first passage that does not fit ends it, and what was left out is said inside the cap. What the text says is data, not instruction:
whoever puts it into a prompt frames it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.headings import heading_line
from retrieval.hits import DatasetReference, DocumentReference, Hit
from retrieval.joining import Piece, join_pieces

SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Citation:
    """What a mark such as [1] stands for. `ids` are the citation ids of all the hits in its passage."""

    mark: int
    ids: tuple[str, ...]
    document: DocumentReference
    heading_path: tuple[str, ...]
    page: int | None
    score: float
    dataset: DatasetReference | None = None


@dataclass(frozen=True, slots=True)
class Context:
    text: str
    citations: tuple[Citation, ...]
    omitted: int

    @property
    def is_empty(self) -> bool:
        return not self.citations


def build_context(hits: Sequence[Hit], max_chars: int = 20_000) -> Context:
    """Passages in the order of the hits; `max_chars` 0 or -1 means no cap. Passages of one document that touch become one."""
    passages = _merged(hits)
    blocks = [f"[{mark}] {_heading(passage[0])}\n{_text(passage)}" for mark, passage in enumerate(passages, start=1)]
    kept = len(blocks) if max_chars <= 0 else _fitting(blocks, max_chars)
    parts = blocks[:kept]
    omitted = len(blocks) - kept
    if omitted and len(note := _omission(omitted)) <= max_chars - len(SEPARATOR.join([*parts, ""])):
        parts.append(note)
    return Context(SEPARATOR.join(parts), tuple(_citation(mark, passage) for mark, passage in enumerate(passages[:kept], start=1)), omitted)


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


def _omission(count: int) -> str:
    return f"[{count} more {'passage' if count == 1 else 'passages'} left out for length]"


def _fitting(blocks: Sequence[str], max_chars: int) -> int:
    """How many blocks fit from the start, the note about the others included."""
    if len(SEPARATOR.join(blocks)) <= max_chars:
        return len(blocks)
    kept, length = 0, 0
    for index, block in enumerate(blocks[:-1]):
        length += len(block) + len(SEPARATOR)
        if length + len(_omission(len(blocks) - index - 1)) > max_chars:
            break
        kept = index + 1
    return kept


def _citation(mark: int, passage: Sequence[Hit]) -> Citation:
    best = passage[0]
    return Citation(mark, tuple(hit.citation for hit in passage), best.document, best.heading_path, best.page, best.score, best.dataset)
