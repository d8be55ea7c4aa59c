"""XML as text that a person reads: documents as headings and paragraphs, records as tables, all else as lists of names and values.

Entities are not expanded, nothing is fetched; what is damaged is read as far as it goes."""

import re
from pathlib import Path

from lxml import etree

from ingestion.extract.base import MEBIBYTE, Extracted, Limits, Served
from ingestion.extract.encodings import decode
from ingestion.extract.fences import fence
from ingestion.extract.text import FENCE_ROOM, MAX_BYTES_PER_CHAR
from ingestion.extract.xml_writer import XmlWriter

MEDIA_TYPE = "application/xml"
# A tree takes some thirty times the bytes of a file that is all tags.
MAX_TREE_BYTES = 8 * MEBIBYTE
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})[\"']")
_PROLOG = re.compile(r"\s*<\?xml[^>]*\?>")


class XmlExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        window = min(limits.wanted_chars * MAX_BYTES_PER_CHAR + 4_096, MAX_TREE_BYTES, data.stat().st_size)
        with data.open("rb") as file:
            raw = file.read(window)
            cut = bool(file.read(1))
        declared = (served.charset,) if served else ()
        if match := _DECLARED.search(raw[:1_000]):
            declared = (*declared, match[1].decode("ascii"))
        decoded = decode(raw, cut=cut, declared=declared)
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=False, remove_comments=True, remove_pis=True
        )
        root = _parsed(decoded.text, parser)
        warnings = list(decoded.warnings)
        writer = XmlWriter(limits=limits)
        markdown = writer.write(root) if root is not None else ""
        if not markdown.strip():
            markdown = fence(decoded.text[: max(1, limits.max_chars - FENCE_ROOM)], language="xml")
        elif len(parser.error_log) and not cut:
            warnings.append("The XML is damaged; what could be read of it was kept.")
        return Extracted(
            markdown=markdown,
            title=writer.title or Path(name).stem,
            media_type=MEDIA_TYPE,
            metadata={"encoding": decoded.encoding},
            truncated=cut,
            warnings=warnings + writer.warnings,
        )


def _parsed(text: str, parser: etree.XMLParser) -> etree._Element | None:
    """Without its declaration, which names the encoding of bytes that are letters now."""
    try:
        return etree.fromstring(_PROLOG.sub("", text, count=1).encode(), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
