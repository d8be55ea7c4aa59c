"""PDF samples, built when asked for."""

from collections.abc import Sequence
from io import BytesIO

from reportlab.lib import pdfencrypt
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table


def text_pdf(pages: Sequence[str], *, title: str = "", password: str | None = None, owner: str = "owner") -> bytes:
    """One page for each text, one line for each of its lines. `password` "" encrypts without asking a reader for one."""
    out = BytesIO()
    encryption = None if password is None else pdfencrypt.StandardEncryption(password, ownerPassword=owner, strength=128)
    canvas = Canvas(out, pagesize=A4, encrypt=encryption)
    canvas.setTitle(title or "untitled")
    for page in pages:
        lines = canvas.beginText(60, 780)
        for line in page.splitlines():
            lines.textLine(line)
        canvas.drawText(lines)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def table_pdf(before: str, rows: Sequence[Sequence[str]], after: str) -> bytes:
    """Prose, a table with all its rules drawn, prose."""
    out = BytesIO()
    style = getSampleStyleSheet()["BodyText"]
    table = Table([list(row) for row in rows], style=[("GRID", (0, 0), (-1, -1), 1, "black")])
    SimpleDocTemplate(out, pagesize=A4).build([Paragraph(before, style), table, Paragraph(after, style)])
    return out.getvalue()


def scanned_pdf(stamp: str = "") -> bytes:
    """A picture of a page, with at most a stamp as text."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=A4)
    canvas.drawImage(_grey_picture(), 0, 0, 595, 842)
    canvas.drawString(20, 20, stamp)
    canvas.save()
    return out.getvalue()


def logo_pdf(text: str) -> bytes:
    """A few words and a picture that fills little of the page."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=A4)
    canvas.drawImage(_grey_picture(), 20, 750, 60, 60)
    canvas.drawString(80, 400, text)
    canvas.save()
    return out.getvalue()


def mixed_pdf(kinds: Sequence[str], *, size: tuple[float, float] = A4) -> bytes:
    """A page for each kind: text, empty, scan; a scan inside a form; a scan that is cut into strips."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=size)
    picture, (width, height) = _grey_picture(), size
    for number, kind in enumerate(kinds):
        match kind:
            case "text":
                canvas.drawString(60, 700, f"A page with text that anybody can read, number {number}.")
            case "scan":
                canvas.drawImage(picture, 0, 0, width, height)
            case "form":
                canvas.beginForm(f"form{number}", 0, 0, 1, 1)
                canvas.drawImage(picture, 0, 0, 1, 1)
                canvas.endForm()
                canvas.scale(width, height)
                canvas.doForm(f"form{number}")
            case "strips":
                for strip in range(20):
                    canvas.drawImage(picture, 0, strip * height / 20, width, height / 20)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def _grey_picture() -> ImageReader:
    from PIL import Image

    return ImageReader(Image.new("L", (200, 280), 200))
