import pytest

from config.errors import ExtractionError
from ingestion.extract.pdf_scans import is_usable, page_picture, scanned_pages
from tests.samples.pdfs import logo_pdf, mixed_pdf, scanned_pdf, text_pdf


@pytest.fixture
def write(tmp_path):
    def _write(content):
        path = tmp_path / "content"
        path.write_bytes(content)
        return path

    return _write


def test_only_pages_of_pictures_without_text_are_scans(write):
    assert scanned_pages(write(mixed_pdf(["text", "scan", "empty", "scan", "text"])), name="a.pdf", max_pages=500) == [2, 4]


def test_pages_are_looked_at_up_to_the_limit(write):
    assert scanned_pages(write(mixed_pdf(["scan"] * 4)), name="a.pdf", max_pages=3) == [1, 2, 3]


def test_a_stamp_is_no_text_and_a_logo_no_scan(write):
    assert scanned_pages(write(scanned_pdf("page 1")), name="a.pdf", max_pages=9) == [1]
    assert scanned_pages(write(logo_pdf("Chapter 1")), name="a.pdf", max_pages=9) == []


def test_a_scan_inside_a_form_and_in_strips_is_one(write):
    assert scanned_pages(write(mixed_pdf(["form", "strips"])), name="a.pdf", max_pages=9) == [1, 2]


def test_text_of_unknown_characters_is_none():
    assert is_usable("The text of one page.")
    assert not is_usable("\ufffd" * 300 + " Some words remain")
    assert not is_usable("\uf0a1\uf0a2 " * 100)


@pytest.mark.parametrize(
    ("size", "most"), [((595, 842), 5_000_000), ((595, 842), 10_000), ((14_000, 14_000), 1_000_000), ((1, 14_000), 50_000)]
)
def test_a_picture_has_no_more_pixels_than_asked(write, size, most):
    width, height = page_picture(write(mixed_pdf(["scan"], size=size)), 1, name="a.pdf", max_pixels=most).size
    assert 0 < width * height <= most
    if max(size) < 1_000 and most > 4_000_000:
        assert (width, height) == (1653, 2339)


def test_a_picture_shows_the_page(write):
    picture = page_picture(write(mixed_pdf(["empty", "scan"])), 2, name="a.pdf", dpi=36)
    assert picture.mode == "L"
    assert picture.getextrema() == (200, 200)


@pytest.mark.parametrize(("content", "reason"), [(text_pdf(["x"], password="a"), "encrypted"), (b"%PDF-1.7 nothing", "damaged")])
def test_what_cannot_be_opened_is_refused(write, content, reason):
    with pytest.raises(ExtractionError) as caught:
        scanned_pages(write(content), name="a.pdf", max_pages=9)
    assert caught.value.reason == reason


def test_a_mixed_document_says_which_pages_are_scans(read):
    extracted = read(mixed_pdf(["text", "scan", "scan"]), name="a.pdf")
    assert extracted.metadata["scanned_pages"] == [2, 3]
    assert "2 of 3 pages are pictures without text." in extracted.warnings
