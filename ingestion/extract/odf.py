"""OpenDocument texts (.odt) and presentations (.odp), by walking their XML: slides are pages, notes stand at the end."""

from pathlib import Path

from ingestion.extract.archive import Archive, damaged
from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.blocks import BlockWriter
from ingestion.extract.inline import inline_markdown
from ingestion.extract.odf_body import BodyReader, as_line
from ingestion.extract.odf_inline import InlineReader
from ingestion.extract.odf_styles import DRAW, OFFICE, PRESENTATION, STYLE, SVG, TABLE, TEXT, Styles
from ingestion.extract.xml_tree import Element, iter_children, parse_xml, text_content

META = "{urn:oasis:names:tc:opendocument:xmlns:meta:1.0}"
DC = "{http://purl.org/dc/elements/1.1/}"
MEDIA_TYPE = "application/vnd.oasis.opendocument."
_STYLES = tuple(f"{OFFICE}{name}" for name in ("automatic-styles", "styles"))
_BLOCKS = tuple(f"{TEXT}{name}" for name in ("p", "h", "list", "section", "numbered-paragraph", "bibliography", "user-index")) + (
    f"{TABLE}table", f"{DRAW}frame", f"{DRAW}g", f"{DRAW}custom-shape",
)  # fmt: skip
_FIELDS = {"title": f"{DC}title", "author": f"{META}initial-creator", "subject": f"{DC}subject", "description": f"{DC}description",
           "language": f"{DC}language", "created": f"{META}creation-date", "modified": f"{DC}date"}  # fmt: skip
_MARGINS = ("footer", "page-number", "date-time", "header")


class OdfExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        with Archive(data, name=name, limits=limits) as archive:
            return _Document(archive, name=name, limits=limits).read()


class _Document:
    def __init__(self, archive: Archive, *, name: str, limits: Limits) -> None:
        self._archive = archive
        self._name = name
        self._limits = limits
        self._styles = Styles()
        self._template = parse_xml(archive.read("styles.xml"), name=name) if "styles.xml" in archive else None
        if self._template is not None:
            self._styles.add(self._template)
        self._body = BodyReader(self._styles, comments=limits.comments)
        self._out = BlockWriter(max_chars=limits.wanted_chars)

    def read(self) -> Extracted:
        if "content.xml" not in self._archive:
            raise damaged(self._name)
        for text in self._margin("header"):
            self._out.paragraph(text)
        slides, cut = self._read_content()
        self._out.end_pages()
        if not cut:
            for label, body in self._body.inline.notes.items():
                self._out.markup(f"[^{label}]: {as_line(self._body, body)}")
            for text in self._margin("footer"):
                self._out.paragraph(text)
        metadata = self._metadata()
        return Extracted(
            markdown=self._out.markdown,
            title=self._body.title or metadata.get("title", "") or self._body.first_heading or Path(self._name).stem,
            media_type=MEDIA_TYPE + ("presentation" if slides else "text"),
            pages=self._out.pages,
            metadata=metadata | ({"slides": slides} if slides else {}),
            truncated=cut,
            warnings=self._out.warnings,
        )

    def _read_content(self) -> tuple[int, bool]:
        """(slides, whether there is more than was read)."""
        slides = 0
        pieces = self._archive.pieces("content.xml")
        parents = (f"{OFFICE}document-content", f"{OFFICE}text", f"{OFFICE}presentation")
        for element in iter_children(pieces, tags=(*_STYLES, *_BLOCKS, f"{DRAW}page"), of=parents, name=self._name):
            if element.tag in _STYLES:
                self._styles.add(element)
            elif self._out.full or slides > self._limits.max_pages:
                return slides, True
            elif element.tag == f"{DRAW}page":
                slides += 1
                if slides > self._limits.max_pages:
                    return slides, True
                self._slide(element, slides)
            else:
                self._body.block(element, self._out)
        return slides, False

    def _slide(self, page: Element, number: int) -> None:
        self._out.begin_page(number)
        frames = [child for child in page if isinstance(child.tag, str) and child.tag.startswith(DRAW)]
        titles = [frame for frame in frames if frame.get(f"{PRESENTATION}class") == "title"]
        title = next((text for frame in titles if (text := " ".join(text_content(frame).split()))), "")
        self._body.first_heading = self._body.first_heading or title
        self._out.heading(title or f"Slide {number}", level=2)
        for frame in frames:
            if frame.get(f"{PRESENTATION}class") not in ("title", *_MARGINS):
                if " " in (text := " ".join((frame.findtext(f"{SVG}desc") or "").split())):
                    self._out.paragraph(text)
                self._body.drawing(frame, self._out)
        for notes in page.findall(f"{PRESENTATION}notes"):
            bodies = (frame for frame in notes if frame.get(f"{PRESENTATION}class") == "notes")
            if text := " ".join(" ".join(text_content(body).split()) for body in bodies):
                self._out.paragraph(f"Notes: {text}")

    def _margin(self, kind: str) -> list[str]:
        """Headers or footers of the page styles, each line once."""
        lines: dict[str, None] = {}
        inline = InlineReader(self._styles)
        for part in self._template.iter(f"{STYLE}{kind}", f"{STYLE}{kind}-first") if self._template is not None else ():
            for paragraph in part.iter(f"{TEXT}p", f"{TEXT}h"):
                text = inline_markdown(inline.read(paragraph).runs, plain=True)
                if any(char.isalpha() for char in text) and not (paragraph.find(f".//{TEXT}page-number") is not None and len(text) <= 16):
                    lines[text] = None
        return list(lines)

    def _metadata(self) -> dict[str, str]:
        if "meta.xml" not in self._archive:
            return {}
        root = parse_xml(self._archive.read("meta.xml"), name=self._name)
        found = {key: " ".join((root.findtext(f".//{tag}") or "").split())[:2_000] for key, tag in _FIELDS.items()}
        return {key: value for key, value in found.items() if value}
