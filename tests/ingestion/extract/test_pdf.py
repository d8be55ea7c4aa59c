import pytest

from config.errors import ExtractionError
from ingestion.extract import Limits, probe
from tests.samples.pdfs import table_pdf, text_pdf

LONG = (
    "The lectern is a reading desk with a slanted top, on which docu-\n"
    "ments or books are placed as support for reading aloud, as in a\n"
    "scripture reading, a lecture or a sermon.\n"
    "\n"
    "A second paragraph."
)


def test_pages_have_spans(read):
    extracted = read(text_pdf(["First page here.", "", "Third page here."], title="A title"), name="a.pdf")
    assert [(span.page, extracted.markdown[span.start : span.end]) for span in extracted.pages] == [
        (1, "First page here."),
        (3, "Third page here."),
    ]
    assert extracted.title == "A title"
    assert extracted.metadata["pages"] == 3


def test_lines_become_paragraphs_and_hyphens_go(read):
    markdown = read(text_pdf([LONG]), name="a.pdf").markdown
    assert "with a slanted top, on which documents or books are placed as support for reading aloud, as in a scripture reading," in markdown


def test_ruled_tables_become_markdown_in_their_place(read):
    rows = [["Name", "Size", "Colour"], ["small desk", "10", "red"], ["large desk", "200", "blue | green"]]
    markdown = read(table_pdf("Text before the table.", rows, "Text after the table."), name="a.pdf").markdown
    table = "| Name | Size | Colour |\n| --- | --- | --- |\n| small desk | 10 | red |\n| large desk | 200 | blue \\| green |"
    assert markdown == f"Text before the table.\n\n{table}\n\nText after the table."


@pytest.mark.parametrize(
    ("content", "reason", "words"),
    [
        (text_pdf(["A page behind a password."], password="open sesame"), "encrypted", "needs a password"),
        (text_pdf([""]), "no_text", "holds no text"),
        (b"%PDF-1.7\n" + b"garbage " * 100, "damaged", "is damaged"),
        (text_pdf(["A page that was cut off in transfer."])[:300], "damaged", "is damaged"),
    ],
)
def test_refusals(read, content, reason, words):
    with pytest.raises(ExtractionError, match=words) as caught:
        read(content, name="a.pdf")
    assert caught.value.reason == reason
    assert caught.value.retires


def test_an_empty_password_is_none(read):
    assert read(text_pdf(["Anybody may read this page."], password=""), name="a.pdf").markdown == "Anybody may read this page."


def test_page_limit_is_visible(read):
    extracted = read(text_pdf([f"This is page number {n}." for n in range(1, 6)]), name="a.pdf", max_pages=3)
    assert [span.page for span in extracted.pages] == [1, 2, 3]
    assert extracted.truncated
    assert "Only the first 3 of 5 pages were read." in extracted.warnings


def test_spans_end_where_the_text_is_cut(read):
    extracted = read(text_pdf(["word " * 15 for _ in range(20)]), name="a.pdf", max_chars=200)
    assert extracted.truncated
    assert extracted.pages[-1].end == len(extracted.markdown) <= 200


def test_probe_stops_early(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(text_pdf([f"This is page number {n} of a long document." for n in range(1, 100)]))
    assert len(probe(path, name="a.pdf", limits=Limits()).pages) < 5
