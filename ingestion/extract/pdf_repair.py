"""A PDF that lost its end, as a broken transfer leaves it: the pages that are still there, under a page tree made anew."""

import re
from pathlib import Path

from ingestion.extract.base import MEBIBYTE

MAX_FILE_BYTES = 64 * MEBIBYTE
MAX_PAGES = 10_000
DICTIONARY_BYTES = 4_096
_OBJECT = re.compile(rb"(?<!\d)(\d{1,8})\s+(\d{1,5})\s+obj\b")
_PAGE = re.compile(rb"/Type\s*/Page\b")
_END = re.compile(rb"\bendobj\b|\bstream\b")
_NUMBERED = 8_388_600  # above every number that pdfium accepts of a file, but for a few


def repaired(data: Path) -> bytes | None:
    """The file with a page tree, a catalog and a trailer at its end that name every page object in it, in the order of the file.
    None when it has none that can be seen, or says that it is encrypted: the key went with the trailer."""
    if data.stat().st_size > MAX_FILE_BYTES:
        return None
    content = data.read_bytes()
    if b"/Encrypt" in content:
        return None
    pages = []
    for match in _OBJECT.finditer(content):
        dictionary = content[match.end() : match.end() + DICTIONARY_BYTES]
        end = _END.search(dictionary)
        if _PAGE.search(dictionary, 0, end.start() if end else len(dictionary)):
            pages.append(b"%s %s R" % (match[1], match[2]))
        if len(pages) >= MAX_PAGES:
            break
    if not pages:
        return None
    kids = list(dict.fromkeys(pages))
    tree, catalog = _NUMBERED, _NUMBERED + 1
    return content + b"".join(
        (
            b"\nendstream\nendobj\n%d 0 obj\n<< /Type /Pages /Kids [%s] /Count %d >>\nendobj\n" % (tree, b" ".join(kids), len(kids)),
            b"%d 0 obj\n<< /Type /Catalog /Pages %d 0 R >>\nendobj\n" % (catalog, tree),
            b"trailer\n<< /Root %d 0 R /Size %d >>\nstartxref\n0\n%%%%EOF\n" % (catalog, catalog + 1),
        )
    )
