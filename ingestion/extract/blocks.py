"""Blocks in the order in which a document has them, written as Markdown: what the readers of office formats have in common."""

import re
from collections.abc import Sequence
from typing import TypeAlias

from ingestion.extract.base import PageSpan
from ingestion.extract.encodings import clean
from ingestion.extract.fences import fence
from ingestion.extract.tables import markdown_table

MAX_HEADING = 6
MAX_ITEM_DEPTH = 9
BULLET = "-"
_MARKDOWN_NUMBER = re.compile(r"\d{1,9}[.)]\Z")
# What only looks like Markdown stays text.
_FALSE_MARK = re.compile(r"(#{1,6} |```|~~~|(?:-{3,}|={3,})$)")


class BlockWriter:
    """Full after `max_chars`: a reader may stop then. Every text is cleaned here, so that page spans hold."""

    def __init__(self, *, max_chars: int) -> None:
        self._room = max_chars
        self._parts: list[str] = []
        self._length = 0
        self._marks: list[int] = []  # widths of the marks of the items that are open
        self._after_item = False
        self._page: int | None = None
        self._page_start: int | None = None
        self.pages: list[PageSpan] = []
        self.warnings: list[str] = []

    @property
    def full(self) -> bool:
        return self._length >= self._room

    @property
    def markdown(self) -> str:
        return "".join(self._parts)

    @property
    def is_empty(self) -> bool:
        return not self._parts

    def heading(self, text: str, *, level: int) -> None:
        if line := " ".join(text.split()):
            self._block(f"{'#' * min(max(1, level), MAX_HEADING)} {line}")

    def paragraph(self, text: str) -> None:
        self._block("\n".join(_marked(line) for line in text.split("\n") if line.strip()))

    def markup(self, text: str) -> None:
        """Markdown as it is."""
        self._block(text)

    def item(self, text: str, *, depth: int = 0, label: str = BULLET) -> None:
        """A list's entry. A label that Markdown does not know ("2.1", "a)") is written after a bullet, as a reader sees it."""
        if label != BULLET and not _MARKDOWN_NUMBER.match(label):
            label, text = BULLET, f"{label} {text}"
        if not text.strip():
            return
        mark = f"{label} "
        del self._marks[min(depth, MAX_ITEM_DEPTH) :]
        indent = " " * sum(self._marks)
        self._marks.append(len(mark))
        inner = f"\n{indent}{' ' * len(mark)}".join(text.split("\n"))
        self._block(f"{indent}{mark}{inner}", gap="\n" if len(self._marks) > 1 or self._after_item else "\n\n", item=True)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        self._block(markdown_table(rows))

    def code(self, text: str) -> None:
        self._block(fence(text).rstrip("\n"))

    def begin_page(self, number: int) -> None:
        """What follows came from this page, until the next one begins; `end_pages` after the last."""
        self.end_pages()
        self._page = number

    def end_pages(self) -> None:
        if self._page is not None and self._page_start is not None:
            self.pages.append(PageSpan(self._page, self._page_start, self._length))
        self._page = self._page_start = None

    def _block(self, text: str, *, gap: str = "\n\n", item: bool = False) -> None:
        if not text.strip():
            return
        text, warnings = clean(text)
        self.warnings += [each for each in warnings if each not in self.warnings]
        if not item:
            self._marks.clear()
        self._after_item = item
        whole = text if not self._parts else gap + text
        if self._page is not None and self._page_start is None:
            self._page_start = self._length + len(whole) - len(text)
        self._parts.append(whole)
        self._length += len(whole)


def comment_line(author: str, time: str, text: str) -> str:
    """What a reviewer noted; `time` as ISO 8601 or ""."""
    return f"[Comment by {author or 'somebody'}{f', {time[:16]}' if time else ''}: {text}]"


def _marked(line: str) -> str:
    return f"\\{line}" if line[:1] in "#`~-=" and _FALSE_MARK.match(line) else line


class CellWriter:
    """The same blocks as one line: for a table's cell, a note, a header. A table inside is said row by row."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        return " ".join(self._parts)

    @property
    def full(self) -> bool:
        return False

    def heading(self, text: str, *, level: int) -> None:
        self.paragraph(text)

    def paragraph(self, text: str) -> None:
        if line := " ".join(text.split()):
            self._parts.append(line)

    markup = code = paragraph

    def item(self, text: str, *, depth: int = 0, label: str = BULLET) -> None:
        if text.strip():
            self.paragraph(f"{label} {text}")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        self.paragraph("; ".join(line for row in rows if (line := ", ".join(cell for cell in row if cell.strip()))))


Writer: TypeAlias = BlockWriter | CellWriter
