"""Pages whose text is not simply one line below the other, drawn where each test needs them."""

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from tests.samples.hostile_pdfs import one_page, stream

LEADING = 14
LEFT, RIGHT, TOP = 60, 320, 760


def drawn(*pages: Callable[[Canvas], None]) -> bytes:
    """A page for each function that draws one."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=A4)
    for page in pages:
        page(canvas)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def lines_at(canvas: Canvas, x: float, y: float, lines: Sequence[str], *, size: float = 11, font: str = "Helvetica") -> None:
    """Lines below each other, each its own piece of text."""
    canvas.setFont(font, size)
    for number, line in enumerate(lines):
        canvas.drawString(x, y - number * LEADING, line)


def rows_across_pdf(left: Sequence[str], right: Sequence[str], *, title: str = "") -> bytes:
    """Two columns that were drawn row by row."""

    def page(canvas: Canvas) -> None:
        if title:
            lines_at(canvas, LEFT, TOP + 40, [title])
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            lines_at(canvas, LEFT, TOP - number * LEADING, [one])
            lines_at(canvas, RIGHT, TOP - number * LEADING, [other])

    return drawn(page)


def turned_pdf(degrees: int, lines: Sequence[str], *, page: int = 0) -> bytes:
    """Lines whose text runs at an angle, on a page that a viewer turns by `page` degrees."""

    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(page)
        canvas.translate(300, 400)
        canvas.rotate(degrees)
        lines_at(canvas, 0, 0, lines)

    return drawn(draw)


def book_pdf(pages: Sequence[str], *, header: str = "", footer: str = "") -> bytes:
    """Pages with a header and a footer; {page} in them is the page's number."""

    def draw(number: int, text: str) -> Callable[[Canvas], None]:
        def page(canvas: Canvas) -> None:
            lines_at(canvas, LEFT, 810, [header.format(page=number)])
            lines_at(canvas, LEFT, TOP, text.splitlines())
            lines_at(canvas, 280, 30, [footer.format(page=number)])

        return page

    return drawn(*(draw(number, text) for number, text in enumerate(pages, 1)))


def outlined_pdf(chapters: Sequence[tuple[int, str, str]]) -> bytes:
    """A page for each (level from 0, title, text), all in one size, with the titles in the outline."""

    def draw(level: int, title: str, text: str) -> Callable[[Canvas], None]:
        def page(canvas: Canvas) -> None:
            canvas.bookmarkPage(title)
            canvas.addOutlineEntry(title, title, level)
            lines_at(canvas, LEFT, TOP, [title, "", *text.splitlines()])

        return page

    return drawn(*(draw(*chapter) for chapter in chapters))


def mapped_pdf(shown: str, meaning: Mapping[str, str], *, font: str = "Helvetica", size: int = 12) -> bytes:
    """Drawn text whose letters stand for others: the font's ToUnicode map says which."""
    rows = b"".join(b"<%02x> <%s>\n" % (ord(char), text.encode("utf-16-be").hex().encode()) for char, text in meaning.items())
    cmap = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /T def /CMapType 2 def\n"
        b"1 begincodespacerange <00> <ff> endcodespacerange\n%d beginbfchar\n%sendbfchar\nendcmap end end" % (len(meaning), rows)
    )
    text = stream(b"BT /F9 %d Tf 60 700 Td (%s) Tj ET" % (size, shown.encode("latin-1")))
    widths = b"500 " * 224
    mapped = b"<< /Type /Font /Subtype /TrueType /BaseFont /%s /ToUnicode 7 0 R /FirstChar 32 /LastChar 255 /Widths [%s] >>"
    return one_page(b"5 0 R", text, mapped % (font.encode(), widths), stream(cmap)).replace(b"/F1 4 0 R", b"/F9 6 0 R")


def spaced_pdf(content: str) -> bytes:
    """One text object with these operators, in Helvetica as /F1."""
    return one_page(b"5 0 R", stream(b"BT /F1 12 Tf 60 700 Td %s ET" % content.encode("latin-1")))


def ruled_pdf(
    rows: Sequence[Sequence[str]], *, width: int = 120, shades: bool = False, degrees: int = 0, spans: Sequence[int] = ()
) -> bytes:
    """A table of drawn rules. `shades` puts a white box behind each line of text; the first cell of the rows `spans` takes them whole."""
    height, count = 20, len(rows[0])

    def page(canvas: Canvas) -> None:
        if degrees:
            canvas.translate(595, 0)
            canvas.rotate(degrees)
        top = 500
        for number, row in enumerate(rows):
            y = top - number * height
            for column, text in enumerate(row):
                x = 60 + column * width
                if number not in spans or column == 0:
                    canvas.line(x, y, x, y - height)
                if shades:
                    canvas.setFillGray(1)
                    canvas.rect(x + 4, y - height + 4, width - 8, height - 8, stroke=0, fill=1)
                    canvas.setFillGray(0)
                lines_at(canvas, x + 5, y - 14, [text])
            canvas.line(60 + count * width, y, 60 + count * width, y - height)
            canvas.line(60, y, 60 + count * width, y)
        canvas.line(60, top - len(rows) * height, 60 + count * width, top - len(rows) * height)

    return drawn(page)


def form_pdf(text: str, fields: Mapping[str, str], *, note: str = "") -> bytes:
    """A page with text fields that are filled in, a box that is ticked, and a note written onto it."""

    def page(canvas: Canvas) -> None:
        lines_at(canvas, LEFT, TOP, [text])
        for number, (name, value) in enumerate(fields.items()):
            canvas.acroForm.textfield(name=name, value=value, x=LEFT, y=TOP - 60 - 40 * number, width=200, height=20)
        canvas.acroForm.checkbox(name="agreed", checked=True, x=LEFT, y=100)
        if note:
            canvas.freeTextAnnotation(note, DA="/Helv 12 Tf", Rect=(LEFT, 200, LEFT + 100, 220))

    return drawn(page)
