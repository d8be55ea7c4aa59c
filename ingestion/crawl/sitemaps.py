"""Sitemaps in every form that the protocol allows: urlset, index, RSS 2.0, Atom, plain text, each of them gzipped or not.

What is not certain to have been read to its end says so, because a run that missed a part of a sitemap may not call a page missing."""

import codecs
import io
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from lxml import etree

from ingestion.crawl.urls import LONGEST_URL, UrlRefused, absolute, authority_of

MOST_BYTES = 16 * 1024 * 1024
MOST_ELEMENTS = 500_000

_GZIP = b"\x1f\x8b"
_MOST_MEMBERS = 1_000
_LAYERS = 2  # a gzip file, sent by a server that gzips every file
_SLICE = 65_536
_DECLARATION = re.compile(rb"<\?xml\b([^>]{0,200})\?>\s*")
_WIDE = re.compile(rb"encoding\s*=\s*[\"'](?:utf-?16|utf-?32|ucs|iso-10646)", re.IGNORECASE)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_STARTS_OF_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
# What each root is, and where the addresses stand below it.
_FORMS = {
    "urlset": ("urlset", ("url", "loc")),
    "sitemapindex": ("index", ("sitemap", "loc")),
    "rss": ("feed", ("channel", "item", "link")),
    "feed": ("feed", ("entry", "link")),
}


@dataclass(frozen=True, slots=True)
class Sitemap:
    """`form` is `urlset`, `index`, `feed` or `text`, and empty for what is no sitemap; `problem` says why one is not `whole`."""

    form: str
    pages: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    whole: bool = True
    problem: str = ""


class _Stop(Exception):
    """Reading ends here, with a sentence that says why."""


def read_sitemap(body: bytes, *, url: str, cut: bool, max_urls: int) -> Sitemap:
    """Whatever can be read of it; `cut` says that the body went on behind what was fetched. No content makes it raise.

    Only absolute http(s) addresses are taken, and from an index only children on its own host. The caller holds pages to its scope."""
    content, problem = _unpack(body)
    if cut:
        problem = f"The sitemap was cut after {len(body):,} bytes, so what follows them is not known."
    found = _Found(host=authority_of(url), most=max_urls)
    content = _plain(content)
    try:
        if content.startswith(b"<"):
            _read_xml(content, found)
        else:
            _read_text(content, found, cut=bool(problem))
    except _Stop as stop:
        # A cut explains whatever comes of it.
        problem = problem or str(stop)
    addresses = tuple(found.addresses)
    if found.form == "index":
        return Sitemap(found.form, (), addresses, not problem, problem)
    return Sitemap(found.form, addresses, (), not problem, problem)


@dataclass(slots=True)
class _Found:
    host: str
    most: int
    form: str = ""
    addresses: dict[str, None] = field(default_factory=dict)

    def take(self, text: str) -> bool:
        """Whether this is an absolute address of the web."""
        text = text.strip()
        if not _WEB.match(text):
            return False
        try:
            address = absolute(text, base=text)
        except UrlRefused:
            return False
        if (self.form == "index" and authority_of(address) != self.host) or address in self.addresses:
            return True
        if len(self.addresses) >= self.most:
            raise _Stop(f"The sitemap lists more than {self.most:,} addresses; the others were not read.")
        self.addresses[address] = None
        return True


@dataclass(slots=True)
class _Reader:
    """Called by the parser for each element, so that no tree is built."""

    found: _Found
    path: list[str] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)
    elements: int = 0
    text: list[str] | None = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.elements += 1
        if self.elements > MOST_ELEMENTS:
            raise _Stop(f"The sitemap has more than {MOST_ELEMENTS:,} elements; the others were not read.")
        if not self.path:
            self._root(tag)
        self.path.append(tag)
        if self.path == self.wanted:
            if self.wanted[0].endswith("feed"):
                if attributes.get("rel", "alternate") == "alternate":
                    self.found.take(attributes.get("href", ""))
            else:
                self.text = []

    def _root(self, tag: str) -> None:
        namespace, bracket, name = tag.rpartition("}")
        if name not in _FORMS:
            raise _Stop(f"This is not a sitemap: its root is <{name[:50]}>.")
        self.found.form, below = _FORMS[name]
        # In the namespace of the root, for the addresses of images and videos are called loc too.
        self.wanted = [tag, *(f"{namespace}{bracket}{child}" for child in below)]

    def data(self, text: str) -> None:
        if self.text is not None and len(self.text) < LONGEST_URL:
            self.text.append(text)

    def end(self, tag: str) -> None:
        if self.text is not None and self.path == self.wanted:
            self.found.take("".join(self.text))
            self.text = None
        self.path.pop()

    def close(self) -> None:
        """The parser asks for a result; it is in `found`."""


def _read_xml(content: bytes, found: _Found) -> None:
    if b"<!ENTITY" in content:
        raise _Stop("The sitemap declares entities of its own, which are not expanded.")
    parser = etree.XMLParser(
        target=_Reader(found),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for start in range(0, len(content), _SLICE):
            parser.feed(content[start : start + _SLICE])
        parser.close()
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        # A part that is missing at the end is an error of syntax too: the root is not closed.
        kind = "The sitemap cannot be read to its end" if found.form else "This is not a sitemap"
        raise _Stop(f"{kind}: {str(error)[:200]}.") from error


def _read_text(content: bytes, found: _Found, *, cut: bool) -> None:
    other = 0
    for number, line in enumerate(io.TextIOWrapper(io.BytesIO(content), "utf-8", "replace"), start=1):
        if number > MOST_ELEMENTS:
            raise _Stop(f"The sitemap has more than {MOST_ELEMENTS:,} lines; the others were not read.")
        if cut and not line.endswith("\n"):
            break  # half an address is another address
        if line.strip() and not line.startswith("#"):
            if found.take(line):
                found.form = "text"
            else:
                other = other or number
    if not found.form:
        raise _Stop("This is not a sitemap: it is neither XML nor a list of addresses.")
    if other:
        raise _Stop(f"Line {other:,} of the sitemap is not an absolute address.")


def _unpack(body: bytes) -> tuple[bytes, str]:
    """The content, recognised by its first bytes and never by name or header, and what is wrong with it."""
    problem = ""
    for _ in range(_LAYERS):
        if not body.startswith(_GZIP):
            break
        body, wrong = _inflate(body)
        problem = problem or wrong
    return body[:MOST_BYTES], problem


def _inflate(packed: bytes) -> tuple[bytes, str]:
    content = bytearray()
    for _ in range(_MOST_MEMBERS):
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            content += member.decompress(packed, MOST_BYTES + 1 - len(content))
        except zlib.error as error:
            return bytes(content), f"The gzip data of the sitemap is damaged: {error}."
        if len(content) > MOST_BYTES:
            return bytes(content), f"The sitemap is larger than {MOST_BYTES:,} bytes once decompressed; the rest was not read."
        if not member.eof:
            return bytes(content), "The gzip data of the sitemap ends too early."
        packed = member.unused_data
        if not packed.startswith(_GZIP):
            return bytes(content), ""  # padding
    return bytes(content), f"The gzip data of the sitemap has more than {_MOST_MEMBERS:,} parts."


def _plain(content: bytes) -> bytes:
    """Without byte-order mark and blank space in front, and never in UTF-16 or UTF-32."""
    for start, encoding in _STARTS_OF_WIDE:
        if content.startswith(start):
            content = content.decode(encoding, "replace").encode("utf-8", "replace")
            break
    content = content.removeprefix(codecs.BOM_UTF8).lstrip()
    declaration = _DECLARATION.match(content)
    if declaration and _WIDE.search(declaration[1]):
        content = content[declaration.end() :]  # true before, and now it is not
    return content
