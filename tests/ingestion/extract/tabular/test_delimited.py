"""CSV and its kin: what a person sees in the file is what comes out."""

import itertools
from contextlib import closing

import pytest

from ingestion.extract import Limits
from ingestion.extract.tabular import Sheet, read_sheets

HEADER = ["name", "amount", "remark"]


@pytest.fixture
def sheet(tmp_path):
    """The only sheet of a file, its rows read."""

    def _sheet(content: bytes | str, *, name: str = "table.csv") -> tuple[Sheet, list[list[object]]]:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        (found,) = [(sheet, list(sheet.rows)) for sheet in read_sheets(path, format="csv", name=name, limits=Limits())]
        return found

    return _sheet


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(sheet, delimiter):
    rows = [HEADER, ["Müller", "1.5", "a"], ["Meier", "2.5", "b"]]
    found, read = sheet("\n".join(delimiter.join(row) for row in rows))
    assert (list(found.header), found.header_kind, read) == (HEADER, "clear", rows[1:])


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("Betrag;Steuer\n1,5;2,5\n3,5;4,5\n", [["1,5", "2,5"], ["3,5", "4,5"]]),
        ("sep=|\na|b,c\n1|2,3\n", [["1", "2,3"]]),
        ('name,quote\nAda,"She said ""no"" to 1,5"\n', [["Ada", 'She said "no" to 1,5']]),
        ('name,quote\nAda,"She said \\"no\\", 1"\n', [["Ada", 'She said "no", 1']]),
        ('name,text\n1,"two\nlines"\n2,"more\r\nof\r\nthem"\n', [["1", "two\nlines"], ["2", "more\nof\nthem"]]),
        ("name,n\r1,2\r3,4\r", [["1", "2"], ["3", "4"]]),
        ("name,n\n1,2,3,4\n5\n\n,,\n6,7\n", [["1", "2", "3", "4"], ["5"], ["6", "7"]]),
        ("name,n\n1,,\n,2\n", [["1"], [None, "2"]]),
        ("a:b\n1:2\n3:4\n", [["1", "2"], ["3", "4"]]),
        ("name\nLozano, Dr\nBaxter\nBerry\n", [["name"], ["Lozano, Dr"], ["Baxter"], ["Berry"]]),
    ],
)
def test_dialects(sheet, content, rows):
    assert sheet(content)[1] == rows


def test_a_quote_that_is_never_closed_swallows_nothing(sheet):
    lines = [f'{number},"word {number}"' for number in range(3_000)]
    lines[10] = '10,"word 10'
    _, rows = sheet("n,word\n" + "\n".join(lines))
    assert len(rows) == 3_000
    assert rows[10] == ["10", '"word 10']
    assert rows[11:13] == [["11", "word 11"], ["12", "word 12"]]


def test_wrong_quotes_in_every_line(sheet):
    _, rows = sheet("n,word\n" + '1,"a" b\n2,"c\n' * 5_000)
    assert len(rows) == 10_000
    assert rows[-2:] == [["1", "a b"], ["2", '"c']]


@pytest.mark.parametrize(
    ("content", "header", "kind", "preamble"),
    [
        ("a,b\nx,y\nz,w\n", ("a", "b"), "likely", ()),
        ("1,2\na,b\nc,d\n", (), "none", ()),
        ("1,2\n3,4\n", (), "none", ()),
        ("Sales of 2024\n\nproduct,sold\npens,5\ninks,7\n", ("product", "sold"), "clear", ("Sales of 2024",)),
        ("country,2019,2020\nPeru,5,6\nChile,7,8\n", ("country", "2019", "2020"), "clear", ()),
        ("x,y\nx,z\nw,x\n", (), "none", ()),
        ("id,,when\n1,a,2024-01-02\n2,b,2024-01-03\n", ("id", "", "when"), "clear", ()),
        ("customer,amount,amount\nAcme,5,6\nBolt,7,8\n", ("customer", "amount", "amount"), "clear", ()),
        ("name,note,note\nAcme,good,bad\nBolt,new,old\n", ("name", "note", "note"), "likely", ()),
        ("yes,yes,yes\nno,7,8\nno,9,1\n", (), "none", ()),
        ("x,x\ny,z\nw,v\n", (), "none", ()),
    ],
)
def test_headers(sheet, content, header, kind, preamble):
    found, _ = sheet(content)
    assert (found.header, found.header_kind, found.preamble) == (header, kind, preamble)


SENTENCES = {
    **dict.fromkeys(("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"), "Grüße – 知识"),
    "cp1252": "Größe der Prüfung über Straßen",
    "cp1251": "Съешь же ещё этих мягких французских булок",
    "gb18030": "知识库是一个存储知识的地方",
    "shift_jis": "これは日本語の文章です",
    "euc_kr": "지식 베이스는 문서를 저장하고 검색하는 곳입니다",
}


@pytest.mark.parametrize("encoding", SENTENCES)
def test_encodings(sheet, encoding):
    """The first foreign letter may stand below everything that is looked at first."""
    content = "id;text\n" + "1;plain\n" * 20_000 + "".join(f"{number};{SENTENCES[encoding]}\n" for number in range(30))
    _, rows = sheet(content.encode(encoding))
    assert len(rows) == 20_030
    assert rows[-1] == ["29", SENTENCES[encoding]]


def test_rows_stream(tmp_path):
    """A large file costs what is read of it."""
    path = tmp_path / "large.csv"
    path.write_text("n,text\n" + "".join(f"{number},some text of row {number}\n" for number in range(350_000)))
    with closing(read_sheets(path, format="csv", name=path.name, limits=Limits())) as sheets:
        (first,) = itertools.islice(next(sheets).rows, 1)
    assert first == ["0", "some text of row 0"]
    assert sum(1 for sheet in read_sheets(path, format="csv", name=path.name, limits=Limits()) for _ in sheet.rows) == 350_000


def test_markdown(read):
    extracted = read('Sales\n\nname,n\npens|inks,5\n"two\nlines",7\n', name="sales.csv")
    assert extracted.markdown == "Sales\n\n| name | n |\n| --- | --- |\n| pens\\|inks | 5 |\n| two lines | 7 |"
    assert (extracted.media_type, extracted.title, extracted.warnings) == ("text/csv", "sales", [])


def test_markdown_is_bounded_and_says_so(read):
    wide = ",".join(f"c{number}" for number in range(70))
    content = wide + "\n" + "".join(f"{number}," + "x," * 69 + "\n" for number in range(6_000))
    extracted = read(content, name="big.csv", max_chars=2_000_000)
    assert extracted.markdown.count("\n") == 5_000  # with the line below the header
    assert extracted.warnings == [
        "Only the first 5,000 rows of the table were kept as text.",
        "Only the first 64 of 70 columns of the table were kept as text.",
    ]
