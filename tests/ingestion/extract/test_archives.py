"""Hostile containers: bombs, lies and twins are refused fast and in little memory, and the child that met them lives on."""

import struct
import time
import zipfile
import zlib
from io import BytesIO

import pytest

from config.errors import ExtractionError
from tests.samples.office import WORD_TYPE, package, paragraph, relations, shape, slides, word, xml

GIBIBYTE = 1024**3
PART = "word/document.xml"


def bomb(size: int, *, stated: int | None = None) -> bytes:
    """A Word document whose body is so many bytes of spaces, made without holding them; `stated` is what the container says of it."""
    step = 1024 * 1024
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    begin = packer.compress(b"<w:document><w:body>") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b"<w:x>" + b" " * (step - 11) + b"</w:x>") + packer.flush(zlib.Z_FULL_FLUSH)
    packed = begin + block * (size // step) + packer.flush(zlib.Z_FINISH)
    whole = BytesIO(word("", extra={PART: "x"}))
    with zipfile.ZipFile(whole) as archive:
        parts = [(info.filename, archive.read(info)) for info in archive.infolist() if info.filename != PART]
    out, directory, count = BytesIO(), b"", 0
    for name, content in parts:
        directory += _entry(out, name, content, zipfile.ZIP_STORED, len(content), zlib.crc32(content))
        count += 1
    directory += _entry(out, PART, packed, zipfile.ZIP_DEFLATED, size if stated is None else stated, 0)
    start = out.tell()
    out.write(directory + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count + 1, count + 1, len(directory), start, 0))
    return out.getvalue()


def _entry(out: BytesIO, name: str, packed: bytes, method: int, size: int, crc: int) -> bytes:
    place, encoded = out.tell(), name.encode()
    common = struct.pack("<5H3L2H", 20, 0, method, 0, 33, crc, len(packed), size, len(encoded), 0)
    out.write(b"PK\3\4" + common + encoded + packed)
    return b"PK\1\2" + struct.pack("<H", 20) + common + struct.pack("<3H2L", 0, 0, 0, 0, place) + encoded


@pytest.fixture
def read_outside(sandbox, tmp_path):
    """Reads bytes in the sandbox; gives the result or the refusal, and the seconds that it took."""

    def _read(content: bytes, name: str = "a.docx"):
        path = tmp_path / name
        path.write_bytes(content)
        started = time.monotonic()
        try:
            result = sandbox.run({"op": "extract", "path": str(path), "name": name})["extracted"]
        except ExtractionError as error:
            result = error
        return result, time.monotonic() - started

    return _read


@pytest.mark.parametrize("stated", [None, 100, 0])
def test_a_bomb_of_two_gibibytes_is_refused_at_once(read_outside, sandbox, stated):
    content = bomb(2 * GIBIBYTE, stated=stated)
    assert len(content) < 2.5 * 1024 * 1024
    pids = sandbox.pids()
    refusal, seconds = read_outside(content)
    assert isinstance(refusal, ExtractionError)
    assert (refusal.reason, refusal.retires) == ("too_large" if stated is None else "damaged", True)
    assert seconds < 10
    assert sandbox.peak_rss_mb < 512
    if pids:
        assert sandbox.pids() == pids


def test_two_parts_of_one_name_are_refused(read):
    out = BytesIO(word(paragraph("The one text.")))
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(PART, xml("w:document", f"<w:body>{paragraph('The other text.')}</w:body>"))
    with pytest.raises(ExtractionError, match="two parts of one name") as caught:
        read(out.getvalue(), name="a.docx")
    assert caught.value.retires


def test_entities_neither_grow_nor_are_fetched(read_outside):
    entities = "".join(f'<!ENTITY e{step} "{f"&e{step - 1};" * 10}">' for step in range(1, 12))
    declared = (
        f'<!DOCTYPE a [<!ENTITY e0 "ha">{entities}<!ENTITY x SYSTEM "http://127.0.0.1:1/"><!ENTITY % p SYSTEM "file:///etc/passwd">%p;]>'
    )
    text = xml("w:document", f"<w:body>{paragraph('Kept &e11;&x;words.')}</w:body>").replace("?><", f"?>{declared}<", 1)
    result, seconds = read_outside(word("", extra={PART: text}))
    assert seconds < 5
    assert isinstance(result, ExtractionError) or result["markdown"] == "Kept words."


def test_an_attribute_of_entities_does_not_grow(read_outside):
    entities = "".join(f'<!ENTITY e{step} "{f"&e{step - 1};" * 10}">' for step in range(1, 12))
    body = '<w:p><w:pPr><w:pStyle w:val="&e11;"/></w:pPr><w:r><w:t>Some words.</w:t></w:r></w:p>'
    text = xml("w:document", f"<w:body>{body}</w:body>").replace("?><", f'?><!DOCTYPE a [<!ENTITY e0 "ha">{entities}]><', 1)
    result, seconds = read_outside(word("", extra={PART: text}))
    assert seconds < 10
    assert isinstance(result, ExtractionError)
    assert (result.retires, "defines entities of its own" in result.message) == (True, True)


def test_entities_in_text_that_grow_are_named(read):
    entities = "".join(f'<!ENTITY e{step} "{f"&e{step - 1};" * 10}">' for step in range(1, 12))
    text = xml("w:document", f"<w:body>{paragraph('Kept &e11; words.')}</w:body>")
    with pytest.raises(ExtractionError, match="defines entities of its own"):
        read(word("", extra={PART: text.replace("?><", f'?><!DOCTYPE a [<!ENTITY e0 "ha">{entities}]><', 1)}), name="a.docx")


@pytest.mark.parametrize(
    ("mebibytes", "words"), [(1_024, "unpacks to more than"), (11, "a single piece of text of more than ten million characters")]
)
def test_one_text_without_end_is_told_by_its_size(read_outside, mebibytes, words):
    out = BytesIO(word("", extra={PART: "x"}))
    whole = BytesIO()
    with zipfile.ZipFile(out) as parts, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for info in parts.infolist():
            if info.filename != PART:
                archive.writestr(info.filename, parts.read(info))
        begin, end = xml("w:document", f"<w:body>{paragraph('|')}</w:body>").encode().split(b"|")
        with archive.open(PART, "w", force_zip64=True) as body:
            body.write(begin)
            for _ in range(mebibytes):
                body.write(b"a" * 1024 * 1024)
            body.write(end)
    refusal, seconds = read_outside(whole.getvalue())
    assert (refusal.reason, words in refusal.message) == ("too_large", True), refusal
    assert seconds < 10


def test_a_slide_a_thousand_groups_deep(read_outside):
    deep = "<p:grpSp>" * 1_000 + "</p:grpSp>" * 1_000
    result, seconds = read_outside(slides(deep), "a.pptx")
    assert seconds < 5
    assert isinstance(result, ExtractionError) or result["markdown"]


def test_a_line_of_ten_million_characters(read_outside):
    result, seconds = read_outside(word(paragraph("word " * 2_000_000)))
    assert seconds < 20
    assert isinstance(result, ExtractionError) or (result["truncated"] and len(result["markdown"]) <= 100_000)


def test_relations_that_lead_round(read):
    layout = relations({"r": ("slideLayout", "../slideLayouts/slideLayout1.xml"), "m": ("slideMaster", "../slideLayouts/slideLayout1.xml")})
    deck = slides(
        shape("A title of words", kind="title"),
        slide1={"r": ("slideLayout", "../slideLayouts/slideLayout1.xml")},
        extra={
            "ppt/slideLayouts/slideLayout1.xml": xml("p:sldLayout", ""),
            "ppt/slideLayouts/_rels/slideLayout1.xml.rels": layout,
        },
    )
    assert read(deck, name="a.pptx").markdown == "## A title of words"


@pytest.mark.parametrize("main", ["word/missing.xml", "../../etc/passwd", ""])
def test_a_package_that_leads_nowhere(read, main):
    broken = package("word/document.xml", WORD_TYPE, {"_rels/.rels": relations({"r": ("officeDocument", main)})})
    with pytest.raises(ExtractionError, match="damaged"):
        read(broken, name="a.docx")
