"""PDF files that nobody's program writes: built object by object, damaged, circular, deep, or larger than they look."""

import zlib
from collections.abc import Sequence
from io import BytesIO

HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def raw_pdf(objects: Sequence[bytes]) -> bytes:
    """The objects numbered from 1; the first is the catalog."""
    out = BytesIO()
    out.write(b"%PDF-1.5\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table))
    return out.getvalue()


def stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), entries, content)


def flate(content: bytes, *, layers: int = 1) -> bytes:
    for _ in range(layers):
        content = zlib.compress(content, 9)
    return stream(content, b"/Filter [%s]" % (b"/FlateDecode " * layers))


def one_page(contents: bytes, *more: bytes, resources: bytes = b"") -> bytes:
    """A page with the entry /Contents as given; `more` objects are numbered from 5, 4 is Helvetica as /F1."""
    return raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %s /Resources << /Font << /F1 4 0 R >> %s >> >>"
            % (contents, resources),
            HELVETICA,
            *more,
        ]
    )


def bomb_pdf(megabytes: int, *, layers: int = 1, streams: int = 1) -> bytes:
    """Content streams that inflate to so many megabytes of spaces each, deflated `layers` times."""
    body = flate(b" " * (megabytes * 1024 * 1024), layers=layers)
    return one_page(b"[%s]" % b" ".join(b"%d 0 R" % number for number in range(5, 5 + streams)), *[body] * streams)


def repeated_stream_pdf(megabytes: int, *, times: int, hidden: bool = False) -> bytes:
    """One content stream that a page names so many times; `hidden` puts the page into a compressed object stream."""
    names = b"5 0 R " * times
    body = flate(b" " * (megabytes * 1024 * 1024))
    if not hidden:
        return one_page(b"[%s]" % names, body)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents [%s] >>" % names
    inner = zlib.compress(b"3 0 " + page)
    packed = stream(inner, b"/Type /ObjStm /N 1 /First 4 /Filter /FlateDecode")
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", None, packed, body]
    return _with_xref_stream(objects, packed_in=4)


def _with_xref_stream(objects: Sequence[bytes | None], *, packed_in: int) -> bytes:
    """As `raw_pdf`, with a cross-reference stream; the object that is None is the first in the object stream `packed_in`."""
    out = BytesIO()
    out.write(b"%PDF-1.5\n")
    rows = [(0, 0, 65535)]
    for number, content in enumerate(objects, 1):
        if content is None:
            rows.append((2, packed_in, 0))
            continue
        rows.append((1, out.tell(), 0))
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    start = out.tell()
    rows.append((1, start, 0))
    table = b"".join(kind.to_bytes(1, "big") + place.to_bytes(4, "big") + index.to_bytes(2, "big") for kind, place, index in rows)
    entries = b"/Type /XRef /W [1 4 2] /Size %d /Root 1 0 R" % len(rows)
    out.write(b"%d 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n" % (len(rows) - 1, stream(table, entries), start))
    return out.getvalue()


def many_pages_pdf(pages: int) -> bytes:
    """A flat page tree of pages that share one content stream."""
    kids = b" ".join(b"%d 0 R" % number for number in range(5, 5 + pages))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
    return raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, pages),
            HELVETICA,
            stream(b"BT /F1 12 Tf 60 700 Td (One of very many pages) Tj ET"),
            *[page] * pages,
        ]
    )


def deep_tree_pdf(depth: int, *, circular: bool = False) -> bytes:
    """A page below so many nested /Pages; `circular` makes the last one a child of its own."""
    nodes = [b"<< /Type /Pages /Kids [%d 0 R] /Count 1 /Parent %d 0 R >>" % (number + 1, number - 1) for number in range(2, 2 + depth)]
    last = 2 + depth
    page = b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 595 842] /Contents %d 0 R /Resources << /Font << /F1 %d 0 R >> >> >>"
    leaf = b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>" if circular else page % (last - 1, last + 1, last + 2)
    text = stream(b"BT /F1 12 Tf 60 700 Td (A page at the end of a deep tree) Tj ET")
    return raw_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", *nodes, leaf, text, HELVETICA])


def nested_forms_pdf(depth: int, *, width: int) -> bytes:
    """Forms that draw the next one `width` times each, down to a line of text; the last draws the first if `width` is 0."""
    forms = []
    for level in range(depth):
        following = 5 + level + 1 if level + 1 < depth else 5
        body = b"/X Do " * max(width, 1) if level + 1 < depth or not width else b"BT /F1 9 Tf 60 700 Td (deep) Tj ET"
        resources = b"<< /Font << /F1 4 0 R >> /XObject << /X %d 0 R >> >>" % following
        forms.append(stream(body, b"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources " + resources))
    content = stream(b"BT /F1 12 Tf 60 600 Td (A page that draws forms) Tj ET /X Do")
    return one_page(b"%d 0 R" % (5 + depth), *forms, content, resources=b"/XObject << /X 5 0 R >>")


def circular_outline_pdf() -> bytes:
    """Bookmarks that follow themselves."""
    return raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R /Outlines 6 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>",
            HELVETICA,
            stream(b"BT /F1 12 Tf 60 700 Td (A page with an outline) Tj ET"),
            b"<< /Type /Outlines /First 7 0 R /Last 8 0 R /Count 2 >>",
            b"<< /Title (One) /Parent 6 0 R /Next 8 0 R /First 8 0 R /Dest [3 0 R /Fit] >>",
            b"<< /Title (Two) /Parent 6 0 R /Next 7 0 R /First 7 0 R /Dest [3 0 R /Fit] >>",
        ]
    )


def grid_pdf(rows: int, columns: int) -> bytes:
    """A page full of rules, each crossing all of the other direction, with a few words."""
    lines = [b"%d 20 m %d 820 l S" % (20 + 550 * column // columns, 20 + 550 * column // columns) for column in range(columns + 1)]
    lines += [b"20 %d m 570 %d l S" % (20 + 800 * row // rows, 20 + 800 * row // rows) for row in range(rows + 1)]
    text = b" BT /F1 4 Tf 30 700 Td (words in a grid) Tj 100 0 Td (of very many cells) Tj ET"
    return one_page(b"5 0 R", flate(b"\n".join(lines) + text))
