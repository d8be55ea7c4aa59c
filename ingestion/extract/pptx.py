"""Presentations (.pptx, .ppsx, .potx, .pptm): slides in their order, each a page; titles are headings, notes follow their slide."""

from pathlib import Path

from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.blocks import BlockWriter, comment_line
from ingestion.extract.docx_styles import number_of
from ingestion.extract.drawings import DGM, C, DrawingReader
from ingestion.extract.grid import MAX_COLUMNS, MAX_ROWS, Cell, spread
from ingestion.extract.ooxml import A, Package, R, Relation, alternatives
from ingestion.extract.pptx_places import BULLETED, Layouts, P, Place, place_of, placeholder, plain_depths, position
from ingestion.extract.pptx_text import TextReader
from ingestion.extract.xml_tree import Element

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
MAX_DEPTH = 30
TITLES = frozenset({"title", "ctrTitle"})
# What stands on every slide: the number and the date are no text, a footer is said once.
MARGINS = frozenset({"sldNum", "dt", "hdr", "ftr"})
SHAPES = tuple(f"{P}{name}" for name in ("sp", "grpSp", "graphicFrame", "pic"))


class PptxExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        with Package(data, name=name, limits=limits) as package:
            return _Presentation(package, name=name, limits=limits).read()


class _Presentation:
    def __init__(self, package: Package, *, name: str, limits: Limits) -> None:
        self._package = package
        self._name = name
        self._limits = limits
        self._main = package.main_part()
        self._relations = package.relations(self._main)
        self._layouts = Layouts(package)
        self._out = BlockWriter(max_chars=limits.wanted_chars)
        self._authors = self._read_authors() if limits.comments else {}
        self._footers: dict[str, None] = {}
        self._title = ""

    def read(self) -> Extracted:
        slides = self._slides()
        read = 0
        for number, part in enumerate(slides[: self._limits.max_pages], start=1):
            if self._out.full:
                break
            self._out.begin_page(number)
            self._slide(part, number)
            read = number
        self._out.end_pages()
        for text in self._footers:
            self._out.paragraph(text)
        metadata = self._package.metadata()
        warnings = list(self._out.warnings)
        if len(slides) > self._limits.max_pages:
            warnings.append(f"Only the first {self._limits.max_pages} of {len(slides)} slides were read.")
        return Extracted(
            markdown=self._out.markdown,
            title=metadata.get("title", "") if _is_named(metadata.get("title", "")) else self._title or Path(self._name).stem,
            media_type=MEDIA_TYPE,
            pages=self._out.pages,
            metadata=metadata | {"slides": len(slides)},
            truncated=read < len(slides),
            warnings=warnings,
        )

    def _slides(self) -> list[str]:
        """Parts in the order in which they are shown, which is not that of their names."""
        root = self._package.read(self._main)
        order = (self._relations.get(each.get(f"{R}id", "")) for each in root.iter(f"{P}sldId"))
        return [each.target for each in order if each is not None and not each.external]

    def _slide(self, part: str, number: int) -> None:
        root = self._package.optional(part)
        if root is None:
            self._out.heading(f"Slide {number}", level=2)
            self._out.paragraph("This slide is damaged and could not be read.")
            return
        relations = self._package.relations(part)
        slide = _Slide(
            self._out,
            text=TextReader(relations),
            drawings=DrawingReader(self._package, relations),
            places=self._layouts.places(part, kind="slideLayout"),
        )
        tree = root.find(f"{P}cSld/{P}spTree")
        shapes = slide.ordered(tree) if tree is not None else []
        title = next((text for shape in shapes if (text := slide.title_of(shape))), "")
        self._title = self._title or title
        hidden = " (hidden)" if root.get("show") in ("0", "false") else ""
        self._out.heading((title or f"Slide {number}") + hidden, level=2)
        for shape in shapes:
            slide.write(shape)
        self._footers |= slide.footers
        self._beside(relations)

    def _beside(self, relations: dict[str, Relation]) -> None:
        """The speaker's notes, and comments where they are wanted."""
        for relation in relations.values():
            if relation.kind == "notesSlide" and (root := self._package.optional(relation.target)) is not None:
                text = TextReader(self._package.relations(relation.target))
                bodies = (shape.find(f"{P}txBody") for shape in root.iter(f"{P}sp") if (placeholder(shape) or ("",))[0] == "body")
                if notes := " ".join(line for body in bodies if body is not None and (line := text.line(body))):
                    self._out.paragraph(f"Notes: {notes}")
            elif relation.kind == "comments" and self._limits.comments:
                for comment in self._comments(relation.target):
                    self._out.paragraph(comment)

    def _comments(self, part: str) -> list[str]:
        """Of both kinds that PowerPoint has had: an element `cm` or `reply` with text of its own."""
        root = self._package.optional(part)
        found: list[str] = []
        for element in root.iter("{*}cm", "{*}reply") if root is not None else ():
            own = element.find("{*}txBody")
            text = element.findtext("{*}text") or (" ".join(each.text or "" for each in own.iter(f"{A}t")) if own is not None else "")
            if words := " ".join((text or "").split()):
                author = self._authors.get(element.get("authorId", ""), "somebody")
                found.append(comment_line(author, element.get("dt") or element.get("created") or "", words))
        return found

    def _read_authors(self) -> dict[str, str]:
        part = next(
            (each.target for each in self._relations.values() if each.kind in ("commentAuthors", "authors")), "ppt/commentAuthors.xml"
        )
        root = self._package.optional(part)
        return (
            {each.get("id", ""): each.get("name", "somebody") for each in root.iter("{*}cmAuthor", "{*}author")} if root is not None else {}
        )


class _Slide:
    def __init__(self, out: BlockWriter, *, text: TextReader, drawings: DrawingReader, places: dict[tuple[str, str], Place]) -> None:
        self._out = out
        self._text = text
        self._drawings = drawings
        self._places = places
        self.footers: dict[str, None] = {}

    def ordered(self, tree: Element) -> list[Element]:
        """From the top to the bottom, then from the left; shapes are stored in the order in which they cover each other."""
        shapes = [child for child in alternatives(tree) if child.tag in SHAPES]
        last = (1 << 40, 0)
        return sorted(shapes, key=lambda shape: self._position(shape) or last)

    def title_of(self, shape: Element) -> str:
        holder, body = placeholder(shape), shape.find(f"{P}txBody")
        return self._text.line(body) if holder is not None and holder[0] in TITLES and body is not None else ""

    def write(self, shape: Element, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            return
        if shape.tag == f"{P}grpSp":
            for child in self.ordered(shape):
                self.write(child, depth + 1)
        elif shape.tag == f"{P}graphicFrame":
            self._frame(shape)
        elif shape.tag == f"{P}pic":
            properties = shape.find(f"{P}nvPicPr/{P}cNvPr")
            text = " ".join((properties.get("descr") or "").split()) if properties is not None else ""
            if " " in text:  # a description, not a file name
                self._out.paragraph(text)
        elif (body := shape.find(f"{P}txBody")) is not None:
            self._words(shape, body)

    def _words(self, shape: Element, body: Element) -> None:
        holder = placeholder(shape)
        kind = holder[0] if holder is not None else None
        if kind in MARGINS:
            if kind == "ftr" and (text := self._text.line(body)):
                self.footers[text] = None
        elif kind not in TITLES:
            place = place_of(holder, self._places) if holder is not None else None
            plain = plain_depths(shape) | (place.plain if place is not None else frozenset())
            self._text.write(body, self._out, bulleted=kind in BULLETED, plain=plain)

    def _frame(self, frame: Element) -> None:
        for element in frame.iter(f"{A}tbl", f"{C}chart", f"{DGM}relIds"):
            if element.tag == f"{A}tbl":
                rows = [[self._cell(cell) for cell in row.findall(f"{A}tc") if not _is_covered(cell)] for row in element.findall(f"{A}tr")]
                self._out.table(spread(rows[:MAX_ROWS]))
            else:
                self._drawings.write(element, self._out)

    def _cell(self, cell: Element) -> Cell:
        body = cell.find(f"{A}txBody")
        columns, rows = number_of(cell.get("gridSpan")) or 1, number_of(cell.get("rowSpan")) or 1
        return Cell(self._text.line(body) if body is not None else "", columns=min(columns, MAX_COLUMNS), rows=min(rows, MAX_ROWS))

    def _position(self, shape: Element) -> tuple[int, int] | None:
        if (own := position(shape)) is not None:
            return own
        holder = placeholder(shape)
        place = place_of(holder, self._places) if holder is not None else None
        return place.at if place is not None else None


def _is_covered(cell: Element) -> bool:
    """A cell that another one lies over."""
    return cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true")


def _is_named(title: str) -> bool:
    """PowerPoint writes this itself, in its user's language or not."""
    return bool(title) and title.lower() not in ("powerpoint presentation", "powerpoint-präsentation", "présentation powerpoint")
