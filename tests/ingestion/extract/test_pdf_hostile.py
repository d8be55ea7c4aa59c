"""PDFs that are damaged, circular, deep or larger than they look: read as far as they go, or refused with a reason."""

import time

import pytest

from config.errors import ExtractionError
from ingestion.extract.sandbox import Sandbox
from tests.samples.hostile_pdfs import (
    bomb_pdf,
    circular_outline_pdf,
    deep_tree_pdf,
    grid_pdf,
    many_pages_pdf,
    nested_forms_pdf,
    one_page,
    raw_pdf,
    repeated_stream_pdf,
    stream,
)
from tests.samples.pdfs import text_pdf

SENTENCE = "A page that is there in spite of everything."
BODY = stream(f"BT /F1 12 Tf 60 700 Td ({SENTENCE}) Tj ET".encode())
PAGES = ["First page of a report that was cut off.", "Second page of it.", "Third page."]


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (bomb_pdf(80), "64 MiB"),
        (bomb_pdf(50, streams=3), "128 MiB"),
        (bomb_pdf(400, layers=2), "64 MiB"),
        (repeated_stream_pdf(60, times=20), "128 MiB"),
        (repeated_stream_pdf(60, times=20, hidden=True), "128 MiB"),
        (repeated_stream_pdf(1, times=2_000), "128 MiB"),
    ],
)
def test_what_unpacks_to_too_much_is_refused(read, content, size):
    with pytest.raises(ExtractionError, match=size) as caught:
        read(content, name="a.pdf")
    assert (caught.value.reason, caught.value.retires) == ("too_large", True)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (deep_tree_pdf(200), "deep tree"),
        (deep_tree_pdf(3_000), "deep tree"),
        (circular_outline_pdf(), "with an outline"),
        (nested_forms_pdf(4, width=0), "draws forms"),
        (nested_forms_pdf(500, width=1), "draws forms"),
        (grid_pdf(100, 100), "words in a grid"),
        (one_page(b"[[[5 0 R] 5 0 R] 5 0 R]", BODY), SENTENCE),
        (one_page(b"5 0 R", BODY).replace(b"/Count 1", b"/Count 99999999"), SENTENCE),
    ],
)
def test_what_is_deep_or_circular_is_read(read, content, text):
    started = time.monotonic()
    assert text in read(content, name="a.pdf").markdown
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("content", [deep_tree_pdf(3, circular=True), raw_pdf([b"<</a" * 200_000])])
def test_trees_without_end_are_damaged(read, content):
    with pytest.raises(ExtractionError, match="is damaged") as caught:
        read(content, name="a.pdf")
    assert caught.value.reason == "damaged"


def test_a_hundred_thousand_pages_are_read_up_to_the_limit(read):
    started = time.monotonic()
    extracted = read(many_pages_pdf(100_000), name="a.pdf", max_pages=50)
    assert (len(extracted.pages), extracted.metadata["pages"], extracted.truncated) == (50, 100_000, True)
    assert time.monotonic() - started < 10


def test_forms_that_draw_each_other_without_end_cost_no_worker(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(nested_forms_pdf(12, width=10))
    note = tmp_path / "note.txt"
    note.write_text("A note.")
    with Sandbox(size=1) as sandbox:
        with pytest.raises(ExtractionError) as caught:
            sandbox.run({"op": "extract", "path": str(path), "name": "a.pdf", "limits": {"max_seconds": 5, "max_memory_mb": 256}})
        assert caught.value.reason in ("memory_limit", "time_limit")
        assert sandbox.run({"op": "extract", "path": str(note), "name": "note.txt"})["extracted"]["markdown"] == "A note."


def test_a_very_long_page_takes_time_by_its_length(read):
    started = time.monotonic()
    body = b"BT /F1 1 Tf 1 0 0 1 10 10 Tm " + b"(abcdefghij klmnop-) Tj 0 2 Td " * 10_000 + b"ET"
    assert len(read(one_page(b"5 0 R", stream(body)), name="a.pdf", max_chars=1_000_000).markdown) > 150_000
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("kept", [0.7, 0.8, 0.9])
def test_a_file_that_lost_its_end_gives_the_pages_that_are_there(read, kept):
    content = text_pdf(PAGES)
    extracted = read(content[: int(kept * len(content))], name="a.pdf")
    assert extracted.markdown.startswith(PAGES[0])
    assert "The file is damaged: what could be found of it was read, parts may be missing." in extracted.warnings


def test_the_second_reader_opens_what_the_first_cannot(read):
    content = one_page(b"5 0 R", BODY).replace(b"1 0 obj", b"1 0 0bj").replace(b"/Type /Page ", b"/Type/#50age ")
    extracted = read(content, name="a.pdf")
    assert extracted.markdown == SENTENCE
    assert extracted.warnings


def test_a_file_without_a_catalog_needs_no_password(read):
    content = one_page(b"5 0 R", BODY).replace(b"/Pages 2 0 R", b"            ").replace(b"/Type /Page ", b"/Type /Pag_ ")
    with pytest.raises(ExtractionError, match="is damaged"):
        read(content, name="a.pdf")


def test_a_damaged_file_after_an_encrypted_one_needs_no_password(read):
    for content, words in ((text_pdf(["secret"], password="x"), "needs a password"), (one_page(b"5 0 R", BODY)[:60], "is damaged")):
        with pytest.raises(ExtractionError, match=words):
            read(content, name="a.pdf")


def test_an_unknown_encryption_is_refused_as_a_password(read):
    content = one_page(b"5 0 R", BODY).replace(b"/Root 1 0 R", b"/Root 1 0 R /Encrypt << /Filter /Unheard >>")
    with pytest.raises(ExtractionError, match="needs a password") as caught:
        read(content, name="a.pdf")
    assert caught.value.reason == "encrypted"
