"""Workbooks from before 2007."""

import datetime as dt

import pytest

from config.errors import ExtractionError
from ingestion.extract import Limits
from ingestion.extract.tabular import read_sheets
from tests.samples.old_workbooks import old_workbook, ole2_file

ROWS = [["Report", None, None], ["name", "day", "share"], ["Größe", 45292, 0.25], ["知识", 45293.5, 1], [True, None, None]]
FORMATS = {1: "dd.mm.yyyy", 2: "0.0%"}


def test_sheets_as_shown(read):
    content = old_workbook({"First": ROWS, "Second": [["a", "b"], ["c", "d"]]}, formats=FORMATS, hidden=["Second"], merged=[(0, 0, 0, 2)])
    extracted = read(content, name="old.xls")
    assert extracted.markdown == (
        "## First\n\nReport\n\n| name | day | share |\n| --- | --- | --- |\n| Größe | 2024-01-01 | 25.0% |\n"
        "| 知识 | 2024-01-02 | 100.0% |\n| TRUE |  |  |\n\n## Second (hidden sheet)\n\n| a | b |\n| --- | --- |\n| c | d |"
    )
    assert (extracted.media_type, extracted.title) == ("application/vnd.ms-excel", "old")


def test_values(tmp_path):
    path = tmp_path / "old.xls"
    path.write_bytes(old_workbook({"First": ROWS}, formats=FORMATS))
    (sheet,) = read_sheets(path, format="xls", name=path.name, limits=Limits())
    assert (sheet.header, sheet.header_kind, sheet.preamble) == (("name", "day", "share"), "clear", ("Report",))


def test_rows_of_values(tmp_path):
    path = tmp_path / "old.xls"
    path.write_bytes(old_workbook({"First": ROWS[1:]}, formats=FORMATS))
    (rows,) = [list(sheet.rows) for sheet in read_sheets(path, format="xls", name=path.name, limits=Limits())]
    assert rows == [["Größe", dt.date(2024, 1, 1), 0.25], ["知识", dt.datetime(2024, 1, 2, 12), 1], [True]]


def test_the_last_cell_of_a_sheet_costs_a_row(read):
    rows = [["first"], *[[]] * 65_534, [*[None] * 255, 7]]
    extracted = read(old_workbook({"A": rows}), name="a.xls")
    assert "first" in extracted.markdown
    assert extracted.warnings == ["Only the first 64 of 256 columns of sheet A were kept as text."]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (old_workbook({"A": [["a", "b"]]})[:3_000], "damaged"),
        (ole2_file({"Workbook": b"\x09\x08\x10\x00" + b"\xff" * 300}), "damaged"),
        (ole2_file({"Workbook": b"\x09\x08\x10\x00\x00\x06\x05\x00" + bytes(12) + b"\x2f\x00\x06\x00" + bytes(6)}), "encrypted"),
        (old_workbook({"A": []}), "empty"),
    ],
)
def test_refusals(read, content, reason):
    with pytest.raises(ExtractionError, match=r"a\.xls") as caught:
        read(content, name="a.xls")
    assert (caught.value.reason, caught.value.retires) == (reason, True)
