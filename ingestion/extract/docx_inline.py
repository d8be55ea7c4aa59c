"""The text of a Word paragraph as runs: fields by their result, insertions in, deletions and hidden text out; what stands in boxes is kept
for after the paragraph."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ingestion.extract.docx_styles import W
from ingestion.extract.equations import M, latex
from ingestion.extract.inline import Run, link_once
from ingestion.extract.ooxml import MC, R, Relation, alternatives, on_off
from ingestion.extract.xml_tree import Element, own_text

MAX_DEPTH = 40
MAX_FIELDS = 50
WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
W14 = "{http://schemas.microsoft.com/office/word/2010/wordml}"
VML = "{urn:schemas-microsoft-com:vml}"

_TRANSPARENT = frozenset(
    f"{W}{name}"
    for name in ["ins", "moveTo", "smartTag", "customXml", "dir", "bdo", "sdtContent", "hyperlink", "fldSimple", "rubyBase", "p"]
)
_GONE = frozenset(f"{W}{name}" for name in ["del", "moveFrom", "delText", "delInstrText", "rPr", "pPr"])
_FIELD_TARGET = re.compile(r'\s*HYPERLINK\s+"([^"]+)"')
# Symbol fonts keep their signs in a private area; of these a reader sees the same.
_SIGNS = {0xFC: "✓", 0xFE: "[x]", 0xA8: "[ ]", 0x6F: "[ ]", 0xFD: "[x]", 0xE0: "→", 0xDF: "←", 0xB7: "•"}
_GENERATED = re.compile(r"\s*(?:Description automatically generated.*|AI-generated content may be incorrect\.?)\s*\Z", re.DOTALL)
_PAGE_FIELDS = ("PAGE", "NUMPAGES", "SECTIONPAGES")


@dataclass(slots=True)
class Line:
    """`beside` holds text boxes, charts and diagrams that are anchored here, `comments` the ids of comments that end here."""

    runs: list[Run] = field(default_factory=list)
    beside: list[Element] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    has_page_number: bool = False


@dataclass(slots=True)
class _Field:
    instruction: str = ""
    shown: bool = False


@dataclass(frozen=True, slots=True)
class _Format:
    bold: bool = False
    italic: bool = False
    target: str = ""


class InlineReader:
    """One for each part: fields may begin in one paragraph and end in another. `notes` gets the ids of notes in the order they are met,
    `linked` the addresses that were written in cells."""

    def __init__(self, relations: Mapping[str, Relation], *, notes: dict[tuple[str, str], str], linked: set[str]) -> None:
        self._relations = relations
        self._notes = notes
        self._linked = linked
        self._fields: list[_Field] = []

    @property
    def in_contents(self) -> bool:
        """Whether a table of contents is under way: it repeats the headings."""
        return any(each.shown and each.instruction.split(None, 1)[:1] == ["TOC"] for each in self._fields)

    def read(self, paragraph: Element, *, in_cell: bool = False) -> Line:
        line = Line()
        self._children(paragraph, line, _Format(), 0)
        if in_cell:
            line.runs = link_once(line.runs, known=self._linked)
        return line

    def _children(self, element: Element, line: Line, form: _Format, depth: int) -> None:
        if depth > MAX_DEPTH:
            return
        for child in chosen(element):
            tag = child.tag
            if tag == f"{W}r":
                self._run(child, line, form, depth)
            elif tag in _TRANSPARENT:
                self._children(child, line, self._inside(child, form), depth + 1)
            elif tag == f"{W}sdt":
                self._control(child, line, form, depth)
            elif tag == f"{M}oMath":
                self._add(line, f" ${latex(child)}$ ", _Format(), raw=True)
            elif tag == f"{M}oMathPara":
                self._add(line, "".join(f"\n$${latex(each)}$$\n" for each in child.iter(f"{M}oMath")), _Format(), raw=True)

    def _inside(self, element: Element, form: _Format) -> _Format:
        if element.tag == f"{W}hyperlink":
            relation = self._relations.get(element.get(f"{R}id", ""))
            return _Format(form.bold, form.italic, relation.target if relation is not None and relation.external else "")
        if element.tag == f"{W}fldSimple" and (match := _FIELD_TARGET.match(element.get(f"{W}instr", ""))):
            return _Format(form.bold, form.italic, match[1])
        return form

    def _control(self, element: Element, line: Line, form: _Format, depth: int) -> None:
        """A form's field: ticked or not; what it says until somebody fills it is no text of the document."""
        properties, content = element.find(f"{W}sdtPr"), element.find(f"{W}sdtContent")
        if properties is not None:
            if on_off(properties.find(f"{W}showingPlcHdr"), f"{W}val"):
                return
            if (box := properties.find(f"{W14}checkbox")) is not None:
                checked = box.find(f"{W14}checked")
                self._add(
                    line, "[x] " if checked is not None and checked.get(f"{W14}val") in ("1", "true") else "[ ] ", _Format(), raw=True
                )
                return
        if content is not None:
            self._children(content, line, form, depth + 1)

    def _run(self, run: Element, line: Line, form: _Format, depth: int) -> None:
        properties = run.find(f"{W}rPr")
        if properties is not None:
            if on_off(properties.find(f"{W}vanish"), f"{W}val") or on_off(properties.find(f"{W}webHidden"), f"{W}val"):
                return
            form = _Format(on_off(properties.find(f"{W}b"), f"{W}val"), on_off(properties.find(f"{W}i"), f"{W}val"), form.target)
        self._content(run, line, form, depth)

    def _content(self, run: Element, line: Line, form: _Format, depth: int) -> None:
        for child in chosen(run):
            name = child.tag.rpartition("}")[2] if child.tag.startswith(W) else ""
            match name:
                case "t":
                    self._add(line, own_text(child), form)
                case "tab" | "ptab":
                    self._add(line, " ", form)
                case "br":
                    self._add(line, "\n" if child.get(f"{W}type", "textWrapping") == "textWrapping" else " ", form)
                case "cr":
                    self._add(line, "\n", form)
                case "noBreakHyphen":
                    self._add(line, "-", form)
                case "sym":
                    self._add(line, _sign(child), form, raw=True)
                case "fldChar":
                    self._field(child, line)
                case "instrText":
                    if self._fields and not self._fields[-1].shown:
                        self._fields[-1].instruction += child.text or ""
                case "footnoteReference" | "endnoteReference":
                    self._note(child, name.removesuffix("Reference"), line)
                case "commentReference":
                    line.comments.append(child.get(f"{W}id", ""))
                case "drawing" | "pict" | "object":
                    self._drawing(child, line)
                case "ruby":
                    self._ruby(child, line, form, depth)

    def _ruby(self, element: Element, line: Line, form: _Format, depth: int) -> None:
        base, reading = element.find(f"{W}rubyBase"), element.find(f"{W}rt")
        if base is not None:
            self._children(base, line, form, depth + 1)
        if reading is not None and (text := "".join(each.text or "" for each in reading.iter(f"{W}t"))):
            self._add(line, f"({text})", form)

    def _field(self, element: Element, line: Line) -> None:
        kind = element.get(f"{W}fldCharType")
        if kind == "begin" and len(self._fields) < MAX_FIELDS:
            self._fields.append(_Field())
        elif kind == "separate" and self._fields:
            self._fields[-1].shown = True
        elif kind == "end" and self._fields:
            self._fields.pop()
        if self._fields and self._fields[-1].instruction.split(None, 1)[:1] in ([each] for each in _PAGE_FIELDS):
            line.has_page_number = True

    def _note(self, element: Element, kind: str, line: Line) -> None:
        key = (kind, element.get(f"{W}id", ""))
        if key not in self._notes:
            count = sum(known == kind for known, _ in self._notes) + 1
            self._notes[key] = f"{count}" if kind == "footnote" else f"e{count}"
        self._add(line, f"[^{self._notes[key]}]", _Format(), raw=True)

    def _drawing(self, element: Element, line: Line) -> None:
        for box in element.iter(f"{W}txbxContent", f"{CHART}chart", f"{DIAGRAM}relIds"):
            if _is_outermost(box, element):
                line.beside.append(box)
        for properties in element.iter(f"{WP}docPr", f"{VML}shape", f"{VML}imagedata"):
            text = properties.get("descr") or properties.get("alt") or ""
            text = " ".join(_GENERATED.sub("", text).split())
            if " " in text:  # a description, not a file name
                self._add(line, f" {text} ", _Format())

    def _add(self, line: Line, text: str, form: _Format, *, raw: bool = False) -> None:
        target = form.target
        if self._fields:
            current = self._fields[-1]
            if not current.shown:
                return
            if not target and (match := next((m for each in self._fields if (m := _FIELD_TARGET.match(each.instruction))), None)):
                target = match[1]
        if text:
            line.runs.append(Run(text, bold=form.bold, italic=form.italic, target=target, raw=raw))


def chosen(element: Element) -> Iterator[Element]:
    """The children that count: of alternatives the first choice, or what stands in for it; nothing that is deleted."""
    return (child for child in alternatives(element) if child.tag not in _GONE)


def _is_outermost(box: Element, drawing: Element) -> bool:
    """Below this drawing itself: the boxes in a box come with it, and a fallback repeats its choice."""
    for above in box.iterancestors():
        if above is drawing:
            return True
        if above.tag in (f"{W}txbxContent", f"{MC}Fallback"):
            return False
    return False


def _sign(element: Element) -> str:
    try:
        code = int(element.get(f"{W}char", ""), 16)
    except ValueError:
        return ""
    if 0xF000 <= code <= 0xF0FF:
        symbol = "wingding" not in element.get(f"{W}font", "").lower()
        known = _SIGNS.get(code - 0xF000)
        return known or (chr(code - 0xF000) if symbol and 0x20 <= code - 0xF000 < 0x7F else "")
    return chr(code) if 0x20 <= code < 0xD800 else ""
