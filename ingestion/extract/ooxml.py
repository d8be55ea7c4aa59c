"""An Office package: parts, what they lead to, and both dialects (Transitional and Strict) as one."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import unquote

from config.errors import ExtractionError
from ingestion.extract.archive import Archive, damaged
from ingestion.extract.base import Limits
from ingestion.extract.xml_tree import Element, iter_children, parse_xml

_BASE = "http://schemas.openxmlformats.org"
RELATIONS = f"{{{_BASE}/package/2006/relationships}}"
R = f"{{{_BASE}/officeDocument/2006/relationships}}"
A = f"{{{_BASE}/drawingml/2006/main}}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
DC = "{http://purl.org/dc/elements/1.1/}"
DCTERMS = "{http://purl.org/dc/terms/}"
CORE = f"{{{_BASE}/package/2006/metadata/core-properties}}"

_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/([A-Za-z]+)/")
# The longest name that could be cut by the end of a piece.
_KEPT_BYTES = 128


@dataclass(frozen=True, slots=True)
class Relation:
    """`kind` is the last word of its type: "header", "hyperlink". `target` is a part's name, or an address when `external`."""

    kind: str
    target: str
    external: bool


class Package:
    def __init__(self, path: Path, *, name: str, limits: Limits) -> None:
        self.name = name
        self._archive = Archive(path, name=name, limits=limits)
        self._names = {part.lower(): part for part in self._archive.names}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def main_part(self) -> str:
        """The document itself."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument" and self._own(relation.target):
                return relation.target
        raise damaged(self.name)

    def relations(self, part: str) -> dict[str, Relation]:
        """By id; of the package when `part` is ""."""
        folder, _, file = part.rpartition("/")
        root = self.optional(posixpath.join(folder, "_rels", f"{file}.rels"))
        if root is None:
            return {}
        return {each.get("Id", ""): _relation(each, folder) for each in root.iter(f"{RELATIONS}Relationship")}

    def read(self, part: str) -> Element:
        return parse_xml(b"".join(self._pieces(part)), name=self.name)

    def optional(self, part: str) -> Element | None:
        """None when it is missing or no XML: a document can be read without its styles or notes."""
        if self._own(part) is None:
            return None
        try:
            return self.read(part)
        except ExtractionError as error:
            if error.reason != "damaged":
                raise
            return None

    def children(self, part: str, *, tags: Iterable[str], of: str) -> Iterator[Element]:
        return iter_children(self._pieces(part), tags=tags, of=(of,), name=self.name)

    def metadata(self) -> dict[str, str]:
        """What the file says of itself, without what it leaves empty."""
        target = next((each.target for each in self.relations("").values() if each.kind == "core-properties"), "docProps/core.xml")
        root = self.optional(target)
        if root is None:
            return {}
        fields = {
            "title": f"{DC}title",
            "author": f"{DC}creator",
            "subject": f"{DC}subject",
            "description": f"{DC}description",
            "keywords": f"{CORE}keywords",
            "language": f"{DC}language",
            "created": f"{DCTERMS}created",
            "modified": f"{DCTERMS}modified",
        }
        found = {key: " ".join((root.findtext(tag) or "").split())[:2_000] for key, tag in fields.items()}
        return {key: value for key, value in found.items() if value}

    def _own(self, part: str) -> str | None:
        """As the container spells it: names are the same whatever their case."""
        return self._names.get(part.lower())

    def _pieces(self, part: str) -> Iterator[bytes]:
        own = self._own(part)
        if own is None:
            raise damaged(self.name)
        return _transitional(self._archive.pieces(own))


def _relation(element: Element, folder: str) -> Relation:
    target, external = element.get("Target", ""), element.get("TargetMode") == "External"
    if not external:
        target = unquote(target.partition("#")[0])
        target = posixpath.normpath(posixpath.join(folder, target) if not target.startswith("/") else target).lstrip("/")
    return Relation(element.get("Type", "").rpartition("/")[2], target, external)


def _transitional(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Strict parts differ in the names of their namespaces, which are written back to the usual ones."""
    kept = b""
    for piece in pieces:
        text = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", kept + piece)
        kept = text[-_KEPT_BYTES:]
        yield text[:-_KEPT_BYTES]
    yield kept


def on_off(element: Element | None, attribute: str) -> bool:
    """A switch of Office: there without a value means on."""
    return element is not None and element.get(attribute, "true") not in ("0", "false", "off", "none")


def alternatives(element: Element) -> Iterator[Element]:
    """The children; of what is there for newer and older programs the first choice, or what stands in for it."""
    for child in element:
        if not isinstance(child.tag, str):
            continue
        if child.tag == f"{MC}AlternateContent":
            choice = child.find(f"{MC}Choice")
            if choice is None or not len(choice):
                choice = child.find(f"{MC}Fallback")
            if choice is not None:
                yield from alternatives(choice)
        else:
            yield child
