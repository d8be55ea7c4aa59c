"""Content decides the format; what is not read is refused with a sentence that says what to do."""

import pytest

from config.errors import ExtractionError
from tests.samples.containers import OLE2_HEADER, encrypted_office_file, office_file, zip_file
from tests.samples.pdfs import text_pdf

PROSE = "Some readable prose about lecterns and the books that lie on them.\n"


@pytest.mark.parametrize(
    ("name", "content", "reason", "words"),
    [
        ("empty.txt", b"", "empty", "is empty"),
        ("blank.txt", b" \n\t\n", "empty", "no text"),
        ("report.docx", office_file("word/document.xml"), "damaged", "is damaged"),
        ("report.txt", office_file("xl/workbook.xml"), "damaged", "is damaged"),
        ("slides.pptx", office_file("ppt/presentation.xml"), "damaged", "is damaged"),
        ("files.zip", zip_file({"a.txt": b"a"}), "unsupported", "is an archive. Unpack it"),
        ("a.xlsx", zip_file({"a.txt": b"a"}), "damaged", "is damaged: it is an archive without the parts of a document"),
        ("a.zip", zip_file({}), "damaged", "is damaged: it is an archive without the parts of a document"),
        ("a.html", b"<p>hi there</p>", "empty", "holds too little text to search in: 8 characters, at least 16"),
        ("a.html", b"<p> </p>", "empty", "holds no text to search in"),
        ("broken.zip", b"PK\x03\x04 and nothing else", "damaged", "damaged archive"),
        ("old.doc", OLE2_HEADER, "unsupported", "Save it as .docx, .xlsx or .pptx"),
        ("secret.xlsx", encrypted_office_file(), "encrypted", "needs a password"),
        ("notes.txt", b"notes\0with\0zeros", "binary", "a binary file"),
        ("noise.dat", bytes(range(1, 9)) * 20, "binary", "a binary file"),
        ("report.pdf", PROSE.encode(), "mislabelled", "holds text"),
        ("photo.jpeg", PROSE.encode(), "mislabelled", "holds text"),
    ],
)
def test_refusals_name_the_file_and_retire_it(read, name, content, reason, words):
    with pytest.raises(ExtractionError, match=words) as caught:
        read(content, name=name)
    assert caught.value.reason == reason
    assert caught.value.retires
    assert name in caught.value.message


@pytest.mark.parametrize(
    ("name", "content", "declared_type", "media_type"),
    [
        ("page.txt", text_pdf(["A page that was given the wrong name."]), "text/plain", "application/pdf"),
        ("page.pdf", b"\n\n" + text_pdf(["Junk may stand before the header."]), None, "application/pdf"),
        ("quoting.txt", b"The header of a PDF is %PDF-1.7 and a version.", None, "text/plain"),
        ("page", b"<!-- made by hand --><!DOCTYPE html><p>Sixteen characters or more.</p>", None, "text/html"),
        ("page.aspx", b"<html><body><p>Sixteen characters or more.</p></body></html>", None, "text/html"),
        ("index.php", b"<?php echo 'source code'; ?>", None, "text/plain"),
        ("page", b"<p>Sixteen characters or more.</p>", "text/html; charset=utf-8", "text/html"),
        ("about-html.txt", b"<html> is the root element of a page.", None, "text/plain"),
        ("README", b"# A title\n\ntext", "text/markdown", "text/markdown"),
        ("thing.unknown", PROSE.encode(), "application/octet-stream", "text/plain"),
        ("data.json", b'{"a": 1}', None, "application/json"),
    ],
)
def test_formats(read, name, content, declared_type, media_type):
    assert read(content, name=name, declared_type=declared_type).media_type == media_type
