"""Excel workbooks: cells as they are shown, values as they are, and what only an enemy writes."""

import datetime as dt
import time
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from config.errors import ExtractionError
from ingestion.extract import Limits
from ingestion.extract.tabular import read_sheets
from tests.samples.containers import zip_file
from tests.samples.workbooks import STRICT, column_name, sheet_data, workbook

TABLE = [["name", "amount"], ["Ada", 1.5], ["Bob", 2]]
MARKDOWN = "| name | amount |\n| --- | --- |\n| Ada | 1.5 |\n| Bob | 2 |"


@pytest.fixture
def sheets(tmp_path):
    """All sheets of a workbook with their rows read."""

    def _sheets(content: bytes, **limits):
        path: Path = tmp_path / "book.xlsx"
        path.write_bytes(content)
        return [(sheet, list(sheet.rows)) for sheet in read_sheets(path, format="xlsx", name=path.name, limits=Limits(**limits))]

    return _sheets


@pytest.mark.parametrize("namespace", [STRICT, "http://schemas.openxmlformats.org/spreadsheetml/2006/main"])
def test_sheets_under_their_names(read, namespace):
    extracted = read(
        workbook({"First": TABLE, "Empty": [], "Kept back": TABLE}, hidden=["Kept back"], namespace=namespace), name="book.xlsx"
    )
    assert extracted.markdown == f"## First\n\n{MARKDOWN}\n\n## Kept back (hidden sheet)\n\n{MARKDOWN}"
    assert (extracted.title, extracted.metadata["sheets"]) == ("book", ["First", "Empty", "Kept back"])


def test_numbers_and_dates_as_shown_and_as_they_are(read, sheets):
    rows = [["day", "share", "price", "span"], [45292, 0.256, -1234.5, 1.5], [45293.75, 1, 0, 0.25]]
    content = workbook(
        {"Data": sheet_data(rows, styles={0: 1, 1: 2, 2: 3, 3: 4})},
        formats=["dd/mm/yyyy", "0.0%", '#,##0.00 "€";(#,##0.00 "€")', "[h]:mm"],
    )
    assert read(content, name="a.xlsx").markdown.splitlines()[-2:] == [
        "| 2024-01-01 | 25.6% | (1,234.50 €) | 36:00 |",
        "| 2024-01-02 | 100.0% | 0.00 € | 6:00 |",
    ]
    ((sheet, values),) = sheets(content)
    assert (sheet.header, sheet.header_kind) == (("day", "share", "price", "span"), "clear")
    assert values == [
        [dt.date(2024, 1, 1), 0.256, -1234.5, dt.timedelta(hours=36)],
        [dt.datetime(2024, 1, 2, 18), 1, 0, dt.timedelta(hours=6)],
    ]


def test_days_since_1904(sheets):
    content = workbook({"A": sheet_data([["day", "n"], [0, 1]], styles={0: 1})}, formats=["yyyy-mm-dd"], from_1904=True)
    assert sheets(content)[0][1] == [[dt.date(1904, 1, 1), 1]]


def test_kinds_of_cells(read, sheets):
    texts = "<si><t>shared</t></si><si><r><t>rich </t></r><r><t xml:space='preserve'>text</t></r><rPh><t>reading</t></rPh></si>"
    cells = (
        '<c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="s"><v>77</v></c><c r="D1" t="b"><v>1</v></c>'
        '<c r="E1" t="e"><v>#DIV/0!</v></c><c r="F1" t="str"><f>A1&amp;1</f><v>shared1</v></c><c r="G1"><f>SUM(1,2)</f></c>'
        '<c r="H1" t="d"><v>2024-01-02T00:00:00</v></c><c t="inlineStr"><is><t>a_x000D_b &lt;c&gt;</t></is></c>'
    )
    content = workbook({"A": f'<sheetData><row>{cells}</row><row r="3"><c r="A3"><v>1</v></c></row></sheetData>'}, texts=texts)
    assert sheets(content)[0][1][0] == ["shared", "rich text", None, True, None, "shared1", "=SUM(1,2)", dt.date(2024, 1, 2), "a\rb <c>"]
    extracted = read(content, name="a.xlsx")
    assert (
        "| shared | rich text |  | TRUE | #DIV/0! | shared1 | =SUM(1,2) | 2024-01-02 | a b <c> |".replace("|  |", "|") in extracted.markdown
    )
    assert extracted.warnings == ["1 formulas of sheet A have no result in the file; they stand as formulas."]


def test_merged_cells_are_read_by_themselves(read):
    rows = [["Report of the year", None, None], ["region", "sales", None], [None, "2023", "2024"], ["north", 1, 2], [None, 3, 4]]
    merges = "".join(f'<mergeCell ref="{cells}"/>' for cells in ("A1:C1", "B2:C2", "A2:A3", "A4:A5"))
    markdown = read(workbook({"A": sheet_data(rows) + f"<mergeCells>{merges}</mergeCells>"}), name="a.xlsx").markdown
    assert markdown == (
        "## A\n\nReport of the year\n\n"
        "| region | sales | sales |\n| --- | --- | --- |\n| region | 2023 | 2024 |\n| north | 1 | 2 |\n| north | 3 | 4 |"
    )


def test_tables_below_and_beside_each_other(read):
    rows = [
        ["Pens", None, None, None, "Inks", None],
        ["name", "sold", None, None, "name", "sold"],
        ["red", 1, None, None, "blue", 3],
        ["green", 2, None, None, None, None],
        [],
        ["A remark below them."],
        [],
        ["name", "price"],
        ["red", 10],
        [],
        ["green", 20],
    ]
    assert read(workbook({"A": rows}), name="a.xlsx").markdown.split("\n\n") == [
        "## A",
        "Pens",
        "| name | sold |\n| --- | --- |\n| red | 1 |\n| green | 2 |",
        "Inks",
        "| name | sold |\n| --- | --- |\n| blue | 3 |",
        "A remark below them.",
        "| name | price |\n| --- | --- |\n| red | 10 |\n| green | 20 |",
    ]


def test_an_empty_column_parts_no_rows(read):
    rows = [["item", None, "2023", None, "2024"], ["rent", None, 1, None, 2], ["food", None, 3, None, 4]]
    assert read(workbook({"A": rows}), name="a.xlsx").markdown.endswith(
        "| item | 2023 | 2024 |\n| --- | --- | --- |\n| rent | 1 | 2 |\n| food | 3 | 4 |"
    )


def test_charts_say_what_they_show(read):
    point = "<pt idx='0'><v>{}</v></pt>".format
    chart = (
        "<c:chartSpace xmlns:c='c' xmlns='c' xmlns:a='a'><c:chart><c:title><c:tx><a:t>Sales of pens</a:t></c:tx></c:title><c:plotArea>"
        f"<c:barChart><c:ser><c:tx>{point('sold')}</c:tx><c:cat>{point('north')}</c:cat><c:val>{point('2.50')}</c:val></c:ser></c:barChart>"
        "</c:plotArea></c:chart></c:chartSpace>"
    )
    link = '<Relationships><Relationship Id="r" Type="x/{}" Target="{}"/></Relationships>'
    parts = {
        "xl/worksheets/_rels/sheet1.xml.rels": link.format("drawing", "../drawings/d.xml").encode(),
        "xl/drawings/d.xml": b"<d/>",
        "xl/drawings/_rels/d.xml.rels": link.format("chart", "../charts/c.xml").encode(),
        "xl/charts/c.xml": chart.encode(),
    }
    markdown = read(workbook({"A": TABLE}, parts=parts), name="a.xlsx").markdown
    assert markdown.endswith("Bar chart: Sales of pens\n\n|  | sold |\n| --- | --- |\n| north | 2.5 |")


def test_a_sheet_to_its_last_cell(read, sheets):
    cells = '<c r="A1" t="inlineStr"><is><t>first of all</t></is></c></row><row r="1048576"><c r="XFD1048576"><v>7</v></c>'
    content = workbook({"A": f'<dimension ref="A1:XFD1048576"/><sheetData><row r="1">{cells}</row></sheetData>'})
    started = time.monotonic()
    rows = sheets(content)[0][1]
    assert (len(rows), len(rows[1]), rows[1][-1]) == (2, 16_384, 7)
    extracted = read(content, name="a.xlsx")
    assert "first of all" in extracted.markdown
    assert extracted.warnings == ["Only the first 64 of 16,384 columns of sheet A were kept as text."]
    assert time.monotonic() - started < 2


def test_rows_and_columns_are_bounded_as_text_only(read, sheets):
    content = workbook({"A": [[f"c{at}" for at in range(65)], *([number, "x"] for number in range(5_100))]})
    extracted = read(content, name="a.xlsx", max_chars=2_000_000)
    assert extracted.markdown.count("\n") == 2 + 5_000
    assert [warning.partition(" of sheet")[0] for warning in extracted.warnings] == [
        "Only the first 5,000 rows",
        "Only the first 64 of 65 columns",
    ]
    assert len(sheets(content)[0][1]) == 5_100


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"xl/sharedStrings.xml": b'<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><sst><si><t>&b;</t></si></sst>'}, "damaged"),
        ({"xl/worksheets/sheet1.xml": b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><worksheet/>'}, "damaged"),
        ({"xl/worksheets/sheet1.xml": b"<worksheet><sheetData><row>"}, "damaged"),
        ({"xl/workbook.xml": b"<workbook/>"}, "damaged"),
        ({"xl/sharedStrings.xml": b"<sst>" + b"<si/>" * 1_000_000 + b"</sst>"}, "too_large"),
        ({"xl/worksheets/sheet1.xml": b"<worksheet/>"}, "empty"),
    ],
)
def test_refusals(read, parts, reason):
    started = time.monotonic()
    with pytest.raises(ExtractionError, match=r"a\.xlsx") as caught:
        read(workbook({"A": TABLE}, parts=parts), name="a.xlsx", max_archive_bytes=4 * 1024 * 1024)
    assert (caught.value.reason, caught.value.retires) == (reason, True)
    assert time.monotonic() - started < 5


def test_column_names():
    assert [column_name(place) for place in (0, 25, 26, 701, 702, 16_383)] == ["A", "Z", "AA", "ZZ", "AAA", "XFD"]


def test_cells_beyond_the_columns_say_the_limit(read):
    row = f'<row r="1"><c r="{column_name(150)}1" t="inlineStr"><is><t>far out</t></is></c></row>'
    with pytest.raises(ExtractionError, match=r"Only the first 100 of 15[01] columns of sheet A"):
        read(workbook({"A": f"<sheetData>{row}</sheetData>"}), name="a.xlsx", max_columns=100)


def test_a_workbook_that_also_names_a_word_part_is_a_workbook(read):
    with zipfile.ZipFile(BytesIO(workbook({"A": TABLE}))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    word = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = b'<Override PartName="/word/document.xml" ContentType="%s"/></Types>' % word
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(b"</Types>", types)
    assert read(zip_file(parts), name="a.xlsx").media_type.endswith("spreadsheetml.sheet")
