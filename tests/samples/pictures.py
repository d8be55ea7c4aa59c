"""Pictures of print, made by code: as a scanner or a phone would hand them over."""

from collections.abc import Sequence
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

LEAVE = (
    "Every employee has thirty days of leave a year.",
    "Leave that is not taken ends with the month of March.",
    "Ask your team lead before you book a journey.",
)
PARKING = (
    "Parking spaces in the yard are given out every January.",
    "Bicycles may stand under the roof beside the entrance.",
)


def print_page(lines: Sequence[str] = LEAVE, *, letters: int = 44, degrees: int = 0, mode: str = "RGB") -> Image.Image:
    """A page at about 200 dpi, turned clockwise."""
    page = Image.new("RGB", (1654, 1200), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(letters)
    for number, line in enumerate(lines):
        draw.text((120, 140 + number * letters * 1.6), line, fill="black", font=font)
    return page.rotate(-degrees, expand=True, fillcolor="white").convert(mode)


def blank_page() -> Image.Image:
    return Image.new("RGB", (1654, 1200), "white")


def saved(page: Image.Image, format: str = "PNG", **options: object) -> bytes:
    out = BytesIO()
    page.save(out, format, **options)
    return out.getvalue()


def tiff(pages: Sequence[Image.Image]) -> bytes:
    """One file of several pages, as scanners write them."""
    return saved(pages[0], "TIFF", save_all=True, append_images=list(pages[1:]), compression="tiff_deflate")


def scanned_pdf(pages: Sequence[Image.Image]) -> bytes:
    """A PDF whose pages are pictures."""
    return saved(pages[0], "PDF", save_all=True, append_images=list(pages[1:]), resolution=200)
