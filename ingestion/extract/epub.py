"""Books (.epub): the chapters of the spine in their order, each by the HTML converter, under the titles of the table of contents."""

import posixpath
from pathlib import Path
from urllib.parse import unquote

from config.errors import ExtractionError
from ingestion.extract.archive import Archive, damaged
from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.blocks import BlockWriter
from ingestion.extract.html_fragment import fragment_markdown, with_title
from ingestion.extract.xml_tree import Element, parse_xml, text_content

MEDIA_TYPE = "application/epub+zip"
CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
# Fonts are written so that they cannot be copied out; the text is not.
OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
CHAPTERS = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document", ""})
DC = "{http://purl.org/dc/elements/1.1/}"
_FIELDS = {
    "title": "title",
    "creator": "author",
    "language": "language",
    "publisher": "publisher",
    "date": "created",
    "description": "description",
}


class EpubExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        with Archive(data, name=name, limits=limits) as archive:
            return _Book(archive, name=name).read(limits)


class _Book:
    def __init__(self, archive: Archive, *, name: str) -> None:
        self._archive = archive
        self._name = name
        self._names = {part.lower(): part for part in archive.names}
        root = next(self._xml(CONTAINER).iter("{*}rootfile"), None)
        self._opf = unquote(root.get("full-path", "")) if root is not None else ""
        self._package = self._xml(self._opf)
        self._items = {each.get("id", ""): each for each in self._package.iter("{*}item")}

    def read(self, limits: Limits) -> Extracted:
        spine = self._spine()
        self._refuse_protected(spine)
        titles = self._titles()
        out = BlockWriter(max_chars=limits.wanted_chars)
        warnings: list[str] = []
        cut = False
        for part in spine:
            if out.full:
                cut = True
                break
            try:
                raw = self._archive.read(part)
            except ExtractionError as error:
                if error.reason != "damaged":
                    raise
                warnings.append(f"A chapter ({part}) is damaged and was left out.")
                continue
            out.markup(with_title(fragment_markdown(raw, warnings=warnings, max_chars=limits.wanted_chars), titles.get(part, "")))
        metadata = self._metadata()
        return Extracted(
            markdown=out.markdown,
            title=metadata.get("title", "") or Path(self._name).stem,
            media_type=MEDIA_TYPE,
            language=_language(metadata.get("language", "")),
            metadata=metadata | {"chapters": len(spine)},
            truncated=cut,
            warnings=[*out.warnings, *warnings],
        )

    def _spine(self) -> list[str]:
        """Parts in the order of reading. What is not linear (answers, large pictures) comes after the rest; contents are left out."""
        linear: list[str] = []
        aside: list[str] = []
        for reference in self._package.iter("{*}itemref"):
            item = self._items.get(reference.get("idref", ""))
            if item is None or item.get("media-type", "") not in CHAPTERS or "nav" in item.get("properties", "").split():
                continue
            part = self._part(item.get("href", ""), self._opf)
            if part is not None:
                (aside if reference.get("linear") == "no" else linear).append(part)
        return list(dict.fromkeys([*linear, *aside]))

    def _titles(self) -> dict[str, str]:
        """The first title that the table of contents gives to each part: of EPUB 3 a page, of EPUB 2 an NCX."""
        found: dict[str, str] = {}
        for item in self._items.values():
            is_page, is_ncx = "nav" in item.get("properties", "").split(), item.get("media-type") == "application/x-dtbncx+xml"
            part = self._part(item.get("href", ""), self._opf) if is_page or is_ncx else None
            root = self._optional(part) if part else None
            if root is None or part is None:
                continue
            for target, title in _links(root) if is_page else _points(root):
                chapter = self._part(target, part)
                if chapter is not None and title:
                    found.setdefault(chapter, title)
        return found

    def _refuse_protected(self, spine: list[str]) -> None:
        root = self._optional(ENCRYPTION)
        for data in root.iter("{*}EncryptedData") if root is not None else ():
            method, reference = next(data.iter("{*}EncryptionMethod"), None), next(data.iter("{*}CipherReference"), None)
            algorithm = method.get("Algorithm", "") if method is not None else ""
            if reference is not None and algorithm not in OBFUSCATION and unquote(reference.get("URI", "")).lstrip("/") in spine:
                happened = f"{self._name} is protected against copying and cannot be read."
                raise ExtractionError(happened, advice="Upload it without that protection.", reason="encrypted", retires=True)

    def _metadata(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, key in _FIELDS.items():
            element = next(self._package.iter(f"{DC}{name}"), None)
            if element is not None and (text := " ".join(text_content(element).split())[:2_000]):
                found[key] = text
        return found

    def _part(self, href: str, base: str) -> str | None:
        """The part that a reference in another part leads to, as the container spells it."""
        target = unquote(href.partition("#")[0])
        path = posixpath.normpath(posixpath.join(posixpath.dirname(base), target)) if target else base
        return self._names.get(path.lower())

    def _xml(self, part: str) -> Element:
        if part not in self._archive:
            raise damaged(self._name)
        return parse_xml(self._archive.read(part), name=self._name)

    def _optional(self, part: str) -> Element | None:
        try:
            return self._xml(part)
        except ExtractionError as error:
            if error.reason != "damaged":
                raise
            return None


def _links(root: Element) -> list[tuple[str, str]]:
    """Of the table of contents; lists of pages and landmarks name parts by other words."""
    navs = [nav for nav in root.iter("{*}nav") if nav.get("{http://www.idpf.org/2007/ops}type", "toc") == "toc"]
    return [(link.get("href", ""), " ".join(text_content(link).split())) for nav in navs for link in nav.iter("{*}a")]


def _points(root: Element) -> list[tuple[str, str]]:
    found = []
    for point in root.iter("{*}navPoint"):
        content, label = point.find("{*}content"), point.find("{*}navLabel")
        if content is not None and label is not None:
            found.append((content.get("src", ""), " ".join(text_content(label).split())))
    return found


def _language(text: str) -> str | None:
    code = text[:2].lower()
    return code if len(code) == 2 and code.isascii() and code.isalpha() and text[2:3] in ("", "-", "_") else None
