"""Scanned pages of a PDF: told apart from those with text, drawn, turned and read."""

import pytest

from config.errors import ExtractionError
from ingestion.extract import Limits, extract
from tests.ingestion.recognize.test_pictures import f1
from tests.samples.pdfs import mixed_pdf
from tests.samples.pictures import LEAVE, PARKING, print_page, scanned_pdf

SHARED_TEXT = "Docling bundles PDF document conversion to JSON and Markdown in an easy self contained package"


@pytest.fixture
def parts_of(tmp_path):
    def read(content: bytes, **limits):
        path = tmp_path / "file.pdf"
        path.write_bytes(content)
        return extract(path, name="file.pdf", declared_type=None, limits=Limits(**limits)).parts

    return read


def test_pages_with_text_keep_theirs_and_scans_wait(parts_of):
    parts = parts_of(mixed_pdf(["text", "scan", "empty", "scan", "text"]), ocr="auto")
    assert [(part.page, part.text is None) for part in parts] == [(1, False), (2, True), (4, True), (5, False)]
    assert parts[0].text == "A page with text that anybody can read, number 0."


def test_a_probe_stops_at_the_first_scan(parts_of):
    assert [part.page for part in parts_of(mixed_pdf(["scan"] * 9), ocr="auto", stop_after_chars=64)] == [1]


@pytest.mark.parametrize(
    ("ocr", "reason", "words"),
    [("off", "ocr_off", "file.pdf is a scan, and text recognition is off for this source. Set settings.ocr"),
     ("missing", "no_engine", "file.pdf is a scan, and no text recognition is installed here. An operator installs tesseract-ocr")],
)  # fmt: skip
def test_a_scan_is_refused_where_nobody_reads_it(parts_of, ocr, reason, words):
    with pytest.raises(ExtractionError, match=words) as caught:
        parts_of(mixed_pdf(["scan", "scan"]), ocr=ocr)
    assert caught.value.reason == reason


def test_a_scanned_page_is_read_as_it_lies(recognize):
    content = scanned_pdf([print_page(LEAVE), print_page(LEAVE + PARKING, degrees=90)])
    assert f1(recognize(content, kind="page", page=1)["recognized"]["text"], " ".join(LEAVE)) == 1
    turned = recognize(content, kind="page", page=2)["recognized"]
    assert f1(turned["text"], " ".join(LEAVE + PARKING)) > 0.95
    assert turned["rotation"] == 270


def test_a_page_that_is_not_there_is_refused(recognize):
    with pytest.raises(ExtractionError, match="Page 3 of scan is damaged"):
        recognize(scanned_pdf([print_page()]), kind="page", page=3)


@pytest.mark.parametrize("name", ["ocr_test.pdf", "ocr_test_rotated_90.pdf"])
def test_the_real_page_upright_and_rotated(recognize, shared_documents, name):
    content = (shared_documents / "ocr" / name).read_bytes()
    assert f1(recognize(content, kind="page", page=1)["recognized"]["text"], SHARED_TEXT) >= 0.95


def test_a_bad_scan_is_read_as_far_as_it_goes(recognize, shared_documents):
    content = (shared_documents / "awkward" / "scan-bad.pdf").read_bytes()
    assert recognize(content, kind="page", page=1)["recognized"]["text"] == "pdf.js"
