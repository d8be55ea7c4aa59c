"""Paragraphs, lists and tables of an RTF file: what its commands make of the runs between them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ingestion.extract.blocks import BULLET, BlockWriter
from ingestion.extract.docx_styles import BODY_LEVEL, is_title_name, named_level
from ingestion.extract.grid import MAX_COLUMNS, MAX_ROWS
from ingestion.extract.inline import Run, inline_markdown
from ingestion.extract.rtf_state import CellShape, Into, Paragraph, Tables

BULLETS = frozenset("•·o▪■◦‣–-—§\uf0b7\uf0a7")
PAGE_WORDS_CHARS = 16


@dataclass(slots=True)
class _Flow:
    """The body, or a note, header or footer that stands inside of it."""

    into: Into
    runs: list[Run] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    around: Paragraph | None = None
    """What held where it began, and holds again when it ends."""


class RtfBlocks:
    def __init__(self, tables: Tables, *, max_chars: int) -> None:
        self.out = BlockWriter(max_chars=max_chars)
        self.label = ""
        self.title = ""
        self.first_heading = ""
        self._tables = tables
        self._flows = [_Flow(Into.BODY)]
        self._paragraph = Paragraph()
        self._depth = 0
        self._lowered = 0
        self._cells: list[str] = []
        self._cell: list[str] = []
        self._shapes: list[CellShape] = []
        self._shape = CellShape()
        self._rows: list[list[str]] = []
        self._notes: list[str] = []
        self._footers: dict[str, None] = {}

    def add(self, run: Run) -> None:
        self._flows[-1].runs.append(run)

    def enter(self, into: Into) -> None:
        if into is Into.NOTE:
            self.add(Run(f"[^{len(self._notes) + 1}]", raw=True))
            self._notes.append("")
        self._flows.append(_Flow(into, around=self._paragraph))
        self._paragraph = Paragraph()

    def leave(self) -> None:
        if len(self._flows) < 2:
            return
        flow = self._flows.pop()
        self._paragraph = flow.around or Paragraph()
        text = " ".join([*flow.lines, _line(flow.runs)]).strip()
        if flow.into is Into.NOTE:
            self._notes[-1] = text
        elif any(char.isalpha() for char in text) and not (len(text) <= PAGE_WORDS_CHARS and any(char.isdigit() for char in text)):
            if flow.into is Into.HEADER and self.out.is_empty:
                self.out.paragraph(text)
            else:
                self._footers[text] = None

    def command(self, word: str, number: int | None) -> None:
        match word:
            case "par" | "sect" | "page":
                self._end_paragraph()
            case "pard":
                self._paragraph = Paragraph()
                self._depth = 0
            case "s":
                self._paragraph.style = number
            case "outlinelevel":
                self._paragraph.level = number
            case "ilvl":
                self._depth = min(max(0, number or 0), 9)
            case "intbl":
                self._paragraph.in_table = True
            case "itap":
                self._paragraph.in_table = bool(number)
                self._paragraph.nesting = number or 0
            case "cell":
                self._end_cell()
            case "nestcell":
                self._end_nested(", ")
            case "nestrow":
                self._end_nested("; ")
            case "row":
                self._end_row()
            case "trowd":
                self._shapes, self._shape = [], CellShape()
            case "clmgf" | "clmrg":
                self._shape.across = "first" if word == "clmgf" else "next"
            case "clvmgf" | "clvmrg":
                self._shape.down = "first" if word == "clvmgf" else "next"
            case "cellx":
                self._shapes.append(self._shape)
                self._shape = CellShape()

    def finish(self) -> None:
        while len(self._flows) > 1:
            self.leave()
        self._end_paragraph()
        self._end_table()
        for number, text in enumerate(self._notes, start=1):
            if text:
                self.out.markup(f"[^{number}]: {text}")
        for text in self._footers:
            if text not in self.out.markdown:
                self.out.paragraph(text)

    def _end_paragraph(self) -> None:
        flow = self._flows[-1]
        runs, flow.runs = flow.runs, []
        label, self.label = self.label, ""
        if flow.into is not Into.BODY:
            flow.lines.append(_line(runs))
        elif self._paragraph.in_table:
            self._cell.append(" ".join([label, _line(runs)]).strip())
        else:
            if any(run.text.strip() for run in runs):
                self._end_table()
            self._write(runs, label)

    def _write(self, runs: list[Run], label: str) -> None:
        name = self._tables.styles.get(self._paragraph.style, "") if self._paragraph.style is not None else ""
        is_title, level = is_title_name(name), self._level(name)
        text = _text(runs, plain=is_title or bool(level))
        if not text:
            return
        if is_title:
            self.title, self._lowered = self.title or text, 1
            self.out.heading(text, level=1)
        elif level:
            self.first_heading = self.first_heading or text
            self.out.heading(f"{label} {text}" if label and label not in BULLETS else text, level=level + self._lowered)
        elif label:
            self.out.item(text, depth=self._depth, label=BULLET if label in BULLETS else label)
        else:
            self.out.paragraph(text)

    def _level(self, name: str) -> int:
        """Of a heading, from 1; 0 for other paragraphs."""
        paragraph = self._paragraph
        outline = paragraph.level
        if outline is None and paragraph.style is not None:
            outline = self._tables.levels.get(paragraph.style)
        if outline is not None:
            return outline + 1 if 0 <= outline < BODY_LEVEL else 0
        return named_level(name) or 0

    def _end_cell(self) -> None:
        flow = self._flows[-1]
        text = " ".join([*self._cell, _line(flow.runs)]).strip()
        flow.runs, self._cell, self.label = [], [], ""
        if len(self._cells) < MAX_COLUMNS:
            self._cells.append(text)

    def _end_nested(self, mark: str) -> None:
        flow = self._flows[-1]
        if text := _line(flow.runs):
            self._cell.append(text + mark.rstrip())
        flow.runs = []

    def _end_row(self) -> None:
        """Cells that are merged say it in the row's definition; what they cover comes empty."""
        cells, self._cells = self._cells, []
        above = self._rows[-1] if self._rows else []
        for at, shape in enumerate(self._shapes[: len(cells)]):
            if shape.across == "next" and at:
                cells[at] = cells[at] or cells[at - 1]
            elif shape.down == "next" and at < len(above):
                cells[at] = cells[at] or above[at]
        if any(cells) and len(self._rows) < MAX_ROWS:
            self._rows.append(cells)

    def _end_table(self) -> None:
        rows, self._rows = self._rows, []
        if max((len(row) for row in rows), default=0) == 1:
            for row in rows:
                self.out.paragraph(row[0])  # a frame around text
        elif rows:
            self.out.table(rows)


def _text(runs: Sequence[Run], *, plain: bool) -> str:
    """UTF-16 units that were written one by one become characters."""
    text = inline_markdown(runs, plain=plain)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _line(runs: Sequence[Run]) -> str:
    return " ".join(_text(runs, plain=False).split())
