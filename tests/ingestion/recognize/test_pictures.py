"""Print in pictures of every format, as it lies, in a child that is closed in."""

import re
from collections import Counter

import pytest
from PIL import Image

from config.errors import ExtractionError
from tests.samples.pictures import LEAVE, PARKING, blank_page, print_page, saved, tiff


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.casefold()))


def f1(found: str, wanted: str) -> float:
    a, b = words(found), words(wanted)
    return 2 * (a & b).total() / (a.total() + b.total())


@pytest.mark.parametrize("format", ["PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF"])
def test_every_format_is_read(recognize, format):
    found = recognize(saved(print_page(), format))["recognized"]
    assert f1(found["text"], " ".join(LEAVE)) == 1
    assert found["confidence"] > 0.8
    assert found["engine"].startswith(("tesseract", "rapidocr"))


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_that_lies_is_turned(recognize, degrees):
    found = recognize(saved(print_page(LEAVE + PARKING, degrees=degrees)))["recognized"]
    assert f1(found["text"], " ".join(LEAVE + PARKING)) > 0.95
    assert found["rotation"] == 360 - degrees


def test_what_a_camera_wrote_about_its_position_counts(recognize):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: show it turned clockwise
    found = recognize(saved(print_page(degrees=270), "JPEG", exif=exif))["recognized"]
    assert (f1(found["text"], " ".join(LEAVE)), found["rotation"]) == (1, 0)


def test_a_page_of_a_tiff_is_read_by_its_number(recognize):
    content = tiff([print_page(LEAVE), print_page(PARKING, mode="1")])
    assert f1(recognize(content, page=2)["recognized"]["text"], " ".join(PARKING)) > 0.95


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA", "CMYK", "I;16"])
def test_every_kind_of_pixel_is_read(recognize, mode):
    page = print_page(mode="L")
    if mode == "I;16":
        page = Image.fromarray(__import__("numpy").asarray(page).astype("uint16") * 257)
    else:
        page = page.convert("RGBA").convert(mode) if mode != "1" else page.convert("1")
    found = recognize(saved(page, "TIFF"))["recognized"]
    assert f1(found["text"], " ".join(LEAVE)) > 0.9


def test_print_on_nothing_is_print_on_white(recognize):
    page = print_page(mode="L")
    inked = Image.new("RGBA", page.size, (0, 0, 0, 0))
    inked.putalpha(page.point(lambda value: 255 - value))
    assert f1(recognize(saved(inked))["recognized"]["text"], " ".join(LEAVE)) > 0.95


def test_small_letters_of_a_screenshot(recognize):
    page = print_page(letters=44).resize((1654 * 14 // 44, 1200 * 14 // 44), Image.Resampling.LANCZOS)
    assert f1(recognize(saved(page))["recognized"]["text"], " ".join(LEAVE)) > 0.95


def test_nothing_is_read_where_nothing_is_printed(recognize):
    assert recognize(saved(blank_page()))["recognized"]["text"] == ""


def test_a_picture_without_print_is_no_text(recognize):
    noise = Image.effect_noise((400, 300), 90)
    found = recognize(saved(noise, "JPEG"))["recognized"]["text"]
    assert len(found.split()) < 3, found


@pytest.mark.parametrize("content", [saved(print_page())[:3000], b"\x89PNG\r\n\x1a\n" + b"\0" * 60, saved(print_page(), "JPEG")[:400]])
def test_a_damaged_picture_is_refused(recognize, content):
    with pytest.raises(ExtractionError, match="scan is damaged: the picture cannot be decoded") as caught:
        recognize(content)
    assert caught.value.retires


def test_a_picture_for_a_model_elsewhere_is_small_and_plain(recognize):
    import base64
    from io import BytesIO

    found = recognize(saved(print_page(mode="L").resize((4000, 2900))), kind="description", prepare=True)
    assert found["media_type"] == "image/jpeg"
    assert max(Image.open(BytesIO(base64.b64decode(found["prepared"]))).size) <= 1568
