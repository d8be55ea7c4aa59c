"""OpenDocument spreadsheets."""

import datetime as dt
import time

import pytest

from config.errors import ExtractionError
from ingestion.extract import Limits
from ingestion.extract.tabular import read_sheets
from tests.samples.containers import zip_file
from tests.samples.open_documents import SPREADSHEET, cell, row, spreadsheet

TABLE = [
    ["name", "day", "share", "open", "span"],
    [
        "Ada",
        ("date", "2024-03-04", "04/03/2024"),
        ("percentage", "0.25", "25.0%"),
        ("boolean", "true", "TRUE"),
        ("time", "PT36H30M00S", "36:30"),
    ],
    ["Bob", ("date", "2024-03-05T12:30:00", "05/03/24 12:30"), ("percentage", "1", "100.0%"), ("boolean", "false", "FALSE"), None],
]


@pytest.fixture
def sheets(tmp_path):
    def _sheets(content: bytes):
        path = tmp_path / "book.ods"
        path.write_bytes(content)
        return [(sheet, list(sheet.rows)) for sheet in read_sheets(path, format="ods", name=path.name, limits=Limits())]

    return _sheets


def test_as_shown(read):
    extracted = read(spreadsheet({"First": TABLE, "Second": [["a", 1.5], ["b", 2]]}, hidden=["Second"]), name="book.ods")
    assert extracted.markdown == (
        "## First\n\n| name | day | share | open | span |\n| --- | --- | --- | --- | --- |\n| Ada | 2024-03-04 | 25.0% | TRUE | 36:30 |\n"
        "| Bob | 2024-03-05 12:30:00 | 100.0% | FALSE |  |\n\n## Second (hidden sheet)\n\n| a | 1.5 |\n| --- | --- |\n| b | 2 |"
    )
    assert extracted.media_type == SPREADSHEET


def test_values(sheets):
    (first, rows), (second, others) = sheets(spreadsheet({"First": TABLE, "Second": [["a", 1.5]]}))
    assert (first.header, first.header_kind, second.name) == (("name", "day", "share", "open", "span"), "clear", "Second")
    assert rows == [
        ["Ada", dt.date(2024, 3, 4), 0.25, True, dt.timedelta(hours=36, minutes=30)],
        ["Bob", dt.datetime(2024, 3, 5, 12, 30), 1, False],
    ]
    assert others == [["a", 1.5]]


def test_repeated_and_merged_cells(sheets, read):
    three, rest = (cell(value, more=f' table:number-columns-repeated="{times}"') for value, times in (("x", 3), (None, 16_381)))
    content = spreadsheet(
        {
            "A": "<table:table-row>"
            + cell("title", more=' table:number-columns-spanned="2"')
            + "<table:covered-table-cell/></table:table-row>"
            f"<table:table-row>{three}{rest}"
            f"</table:table-row>{row(['y', 'z'], times=3)}{row([None], times=1_048_570)}"
        }
    )
    assert sheets(content)[0][1] == [["title"], ["x", "x", "x"], ["y", "z"], ["y", "z"], ["y", "z"]]
    assert read(content, name="a.ods").markdown.startswith("## A\n\ntitle\n\n| x | x | x |")


def test_text_of_a_cell(sheets):
    inside = (
        "<table:table-row><table:table-cell><text:p>two<text:s text:c='2'/>parts</text:p><text:p>below <text:a>a link</text:a></text:p>"
        "<office:annotation><text:p>a note</text:p></office:annotation></table:table-cell></table:table-row>"
    )
    assert sheets(spreadsheet({"A": inside}))[0][1] == [["two  parts\nbelow a link"]]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (spreadsheet({"A": row(["x"] * 60, times=1_048_576)}), "too_large"),
        (spreadsheet({"A": []}), "empty"),
        (zip_file({"mimetype": SPREADSHEET.encode()}), "damaged"),
        (zip_file({"mimetype": SPREADSHEET.encode(), "content.xml": b"<a><b>"}), "damaged"),
        (zip_file({"mimetype": SPREADSHEET.encode(), "content.xml": b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}), "damaged"),
    ],
)
def test_refusals(read, content, reason):
    started = time.monotonic()
    with pytest.raises(ExtractionError, match=r"a\.ods") as caught:
        read(content, name="a.ods")
    assert (caught.value.reason, caught.value.retires) == (reason, True)
    assert time.monotonic() - started < 5
