"""Word documents (.docx, .docm, .dotx), Transitional and Strict: the body in its order, headers and footers once, notes at the end."""

import re
from collections.abc import Mapping
from pathlib import Path

from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.blocks import BlockWriter, CellWriter, comment_line
from ingestion.extract.docx_body import BLOCK_TAGS, BodyReader
from ingestion.extract.docx_inline import InlineReader
from ingestion.extract.docx_numbering import Numbering
from ingestion.extract.docx_styles import W, read_styles
from ingestion.extract.drawings import DrawingReader
from ingestion.extract.inline import inline_markdown
from ingestion.extract.ooxml import Package, Relation
from ingestion.extract.xml_tree import Element

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
# What is left of "Page 3 of 7" when its numbers are counted by the program.
PAGE_WORDS_CHARS = 16
_LETTERS = re.compile(r"\w+")


class DocxExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        with Package(data, name=name, limits=limits) as package:
            return _Document(package, name=name, limits=limits).read()


class _Document:
    def __init__(self, package: Package, *, name: str, limits: Limits) -> None:
        self._package = package
        self._name = name
        self._main = package.main_part()
        self._relations = package.relations(self._main)
        self._styles = read_styles(package, self._related("styles"))
        numbering = self._related("numbering")
        self._numbering = Numbering(package.optional(numbering) if numbering else None)
        self._notes: dict[tuple[str, str], str] = {}
        self._linked: set[str] = set()
        self._out = BlockWriter(max_chars=limits.wanted_chars)
        self._comments = self._read_comments() if limits.comments else {}

    def read(self) -> Extracted:
        headers, footers = self._margin("header"), self._margin("footer")
        for text in headers:
            self._out.paragraph(text)
        reader = self._reader(self._main, self._relations, comments=self._comments)
        cut = False
        for block in self._package.children(self._main, tags=BLOCK_TAGS, of=f"{W}body"):
            if self._out.full:
                cut = True
                break
            reader.block(block, self._out)
        if not cut:
            self._write_notes()
            for text in footers:
                if text not in headers:
                    self._out.paragraph(text)
        metadata = self._package.metadata()
        unread = ["A part that another program put in as a whole (an altChunk) was not read."] if reader.has_chunks else []
        return Extracted(
            markdown=self._out.markdown,
            title=reader.title or metadata.get("title", "") or reader.first_heading or Path(self._name).stem,
            media_type=MEDIA_TYPE,
            metadata=metadata,
            truncated=cut,
            warnings=[*self._out.warnings, *unread],
        )

    def _related(self, kind: str) -> str | None:
        return next((each.target for each in self._relations.values() if each.kind == kind and not each.external), None)

    def _reader(self, part: str, relations: Mapping[str, Relation], *, comments: Mapping[str, str] | None = None) -> BodyReader:
        return BodyReader(
            InlineReader(relations, notes=self._notes, linked=self._linked),
            styles=self._styles,
            numbering=self._numbering,
            drawings=DrawingReader(self._package, relations),
            comments=comments or {},
        )

    def _margin(self, kind: str) -> list[str]:
        """Each line of the headers or footers once, whichever pages it stands on; page numbers are no text."""
        lines: dict[str, str] = {}
        for part in sorted({each.target for each in self._relations.values() if each.kind == kind and not each.external}):
            root = self._package.optional(part)
            if root is None:
                continue
            relations = self._package.relations(part)
            inline = InlineReader(relations, notes=self._notes, linked=self._linked)
            for paragraph in root.iter(f"{W}p"):
                if next(paragraph.iterancestors(f"{W}del"), None) is not None:
                    continue
                line = inline.read(paragraph)
                text = inline_markdown(line.runs, plain=True)
                words = " ".join(_LETTERS.findall(re.sub(r"\d+", "", text)))
                if words and not (line.has_page_number and len(words) <= PAGE_WORDS_CHARS):
                    lines.setdefault(words.casefold(), text)
        return list(lines.values())

    def _write_notes(self) -> None:
        for kind in ("footnote", "endnote"):
            wanted = {identifier: label for (known, identifier), label in self._notes.items() if known == kind}
            part = self._related(f"{kind}s")
            root = self._package.optional(part) if wanted and part else None
            if root is None:
                continue
            found = {element.get(f"{W}id", ""): element for element in root.iter(f"{W}{kind}")}
            reader = self._reader(part or "", self._package.relations(part or ""))
            for identifier, label in wanted.items():
                if identifier in found and (text := _as_line(reader, found[identifier])):
                    self._out.markup(f"[^{label}]: {text}")

    def _read_comments(self) -> dict[str, str]:
        part = self._related("comments")
        root = self._package.optional(part) if part else None
        if root is None:
            return {}
        reader = self._reader(part or "", self._package.relations(part or ""))
        return {
            element.get(f"{W}id", ""): comment_line(element.get(f"{W}author", ""), element.get(f"{W}date", ""), text)
            for element in root.iter(f"{W}comment")
            if (text := _as_line(reader, element))
        }


def _as_line(reader: BodyReader, element: Element) -> str:
    out = CellWriter()
    reader.blocks(element, out, 0)
    return out.text
