"""The text of an OpenDocument paragraph as runs; notes, comments and frames are kept for after it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ingestion.extract.docx_styles import number_of
from ingestion.extract.inline import Run
from ingestion.extract.odf_styles import DRAW, OFFICE, SVG, TEXT, XLINK, Style, Styles
from ingestion.extract.xml_tree import Element

MAX_DEPTH = 40
MAX_SPACES = 100
_SPANS = frozenset(
    f"{TEXT}{name}" for name in ("span", "meta", "meta-field", "ruby-base", "ruby", "bookmark-ref", "reference-ref", "p", "h")
)
_GONE = frozenset(f"{TEXT}{name}" for name in ("page-number", "page-count", "tracked-changes", "hidden-text", "hidden-paragraph"))


@dataclass(slots=True)
class Line:
    runs: list[Run] = field(default_factory=list)
    beside: list[Element] = field(default_factory=list)
    comments: list[Element] = field(default_factory=list)


class InlineReader:
    """One for each document. `notes` has the bodies of notes by their labels, in the order in which they are met."""

    def __init__(self, styles: Styles) -> None:
        self._styles = styles
        self.notes: dict[str, Element] = {}

    def read(self, paragraph: Element) -> Line:
        line = Line()
        line.runs = list(self._inside(paragraph, line, Style(), "", 0))
        return line

    def _inside(self, element: Element, line: Line, style: Style, target: str, depth: int) -> Iterator[Run]:
        if depth > MAX_DEPTH:
            return
        yield self._run(element.text, style, target)
        for child in element:
            tag = child.tag
            if not isinstance(tag, str):
                pass
            elif tag in _SPANS:
                own = self._styles.text(child.get(f"{TEXT}style-name", "")) if tag == f"{TEXT}span" else Style()
                yield from self._inside(child, line, _over(own, style), target, depth + 1)
            elif tag == f"{TEXT}a":
                yield from self._inside(child, line, style, child.get(f"{XLINK}href", ""), depth + 1)
            elif tag == f"{TEXT}s":
                yield Run(" " * min(number_of(child.get(f"{TEXT}c")) or 1, MAX_SPACES))
            elif tag == f"{TEXT}tab":
                yield Run(" ")
            elif tag == f"{TEXT}line-break":
                yield Run("\n")
            elif tag == f"{TEXT}ruby-text":
                yield self._run(f"({child.text})" if child.text else "", style, target)
            elif tag == f"{TEXT}note":
                yield self._note(child)
            elif tag == f"{OFFICE}annotation":
                line.comments.append(child)
            elif tag.startswith(DRAW):
                yield from self._drawing(child, line)
            elif tag not in _GONE and tag.startswith(TEXT):
                yield from self._inside(child, line, style, target, depth + 1)  # a field: what it shows
            yield self._run(child.tail, style, target)

    def _run(self, text: str | None, style: Style, target: str) -> Run:
        if not text or style.hidden:
            return Run("")
        # A line end of the file is a space; a line's end has an element of its own.
        return Run(text.replace("\n", " "), bold=bool(style.bold), italic=bool(style.italic), target=target)

    def _note(self, note: Element) -> Run:
        end = note.get(f"{TEXT}note-class") == "endnote"
        count = sum(label.startswith("e") == end for label in self.notes) + 1
        label = f"e{count}" if end else str(count)
        body = note.find(f"{TEXT}note-body")
        if body is None:
            return Run("")
        self.notes[label] = body
        return Run(f"[^{label}]", raw=True)

    def _drawing(self, element: Element, line: Line) -> Iterator[Run]:
        """Frames and shapes: what they hold comes after the paragraph, their description where they stand."""
        line.beside.append(element)
        text = " ".join((element.findtext(f"{SVG}desc") or element.findtext(f"{SVG}title") or "").split())
        if " " in text:  # a description, not a file name
            yield Run(f" {text} ")


def _over(own: Style, below: Style) -> Style:
    return Style(
        bold=below.bold if own.bold is None else own.bold,
        italic=below.italic if own.italic is None else own.italic,
        hidden=below.hidden if own.hidden is None else own.hidden,
    )
