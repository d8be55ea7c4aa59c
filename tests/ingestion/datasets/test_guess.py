"""Types as a careful person would say them; and what DuckDB makes of the same cells."""

import datetime as dt
from decimal import Decimal

import duckdb
import pytest

from ingestion.datasets.guess import Guess, text_of
from ingestion.datasets.parquet import write_rows

D, T = dt.date, dt.datetime
NORTH = dt.UTC


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["007", "012"], "VARCHAR", ["007", "012"]),
        (["0", "7", "-12"], "BIGINT", [0, 7, -12]),
        (["00", "1"], "VARCHAR", ["00", "1"]),
        (["+49 30 1", "+49 30 2"], "VARCHAR", ["+49 30 1", "+49 30 2"]),
        (["12345678901234567890"], "VARCHAR", ["12345678901234567890"]),
        (["999999999999999999"], "BIGINT", [999999999999999999]),
        (["1.5", "2.25", "3"], "DECIMAL(18,2)", [Decimal("1.50"), Decimal("2.25"), Decimal("3.00")]),
        ([".5", "-.25"], "DECIMAL(18,2)", [Decimal("0.50"), Decimal("-0.25")]),
        (["3.14159265", "2.0"], "DOUBLE", [3.14159265, 2.0]),
        (["1.5e+3", "2"], "DOUBLE", [1500.0, 2.0]),
        (["1e5", "2e7"], "VARCHAR", ["1e5", "2e7"]),
        (["1,234", "5,678"], "VARCHAR", ["1,234", "5,678"]),
        (["1,234", "1,234,567"], "BIGINT", [1234, 1234567]),
        (["1,234", "2,500.50"], "DECIMAL(18,2)", [Decimal("1234.00"), Decimal("2500.50")]),
        (["1,234", "12,5"], "DECIMAL(18,3)", [Decimal("1.234"), Decimal("12.500")]),
        (["12,50", "7"], "DECIMAL(18,2)", [Decimal("12.50"), Decimal("7.00")]),
        (["1.234,50", "12,5"], "DECIMAL(18,2)", [Decimal("1234.50"), Decimal("12.50")]),
        (["1.234.567", "12"], "BIGINT", [1234567, 12]),
        (["1 234", "1\u202f234\u202f567"], "BIGINT", [1234, 1234567]),
        (["1 234,50", "2 000,25"], "DECIMAL(18,2)", [Decimal("1234.50"), Decimal("2000.25")]),
        (["1.234", "2.5"], "DECIMAL(18,3)", [Decimal("1.234"), Decimal("2.500")]),
        (["$5", "$6"], "VARCHAR", ["$5", "$6"]),
        (["5%", "6%"], "VARCHAR", ["5%", "6%"]),
        (["2024-08-31", "1999-12-31"], "DATE", [D(2024, 8, 31), D(1999, 12, 31)]),
        (["2024-02-30"], "VARCHAR", ["2024-02-30"]),
        (["31.8.2024", "01.02.2024"], "DATE", [D(2024, 8, 31), D(2024, 2, 1)]),
        (["03/04/2024", "05/06/2024"], "VARCHAR", ["03/04/2024", "05/06/2024"]),
        (["03/04/2024", "25/06/2024"], "DATE", [D(2024, 4, 3), D(2024, 6, 25)]),
        (["03/04/2024", "06/25/2024"], "DATE", [D(2024, 3, 4), D(2024, 6, 25)]),
        (["13/04/2024", "06/25/2024"], "VARCHAR", ["13/04/2024", "06/25/2024"]),
        (["31 Aug 2024", "1 September 2024"], "DATE", [D(2024, 8, 31), D(2024, 9, 1)]),
        (["Aug 31, 2024"], "DATE", [D(2024, 8, 31)]),
        (["2024/8/3"], "DATE", [D(2024, 8, 3)]),
        (["20240831"], "BIGINT", [20240831]),
        (["2024-08-31 12:30", "2024-08-31T12:30:15.5"], "TIMESTAMP", [T(2024, 8, 31, 12, 30), T(2024, 8, 31, 12, 30, 15, 500000)]),
        (["2024-08-31", "2024-08-31 12:30"], "TIMESTAMP", [T(2024, 8, 31), T(2024, 8, 31, 12, 30)]),
        (["31.08.2024 12:30"], "TIMESTAMP", [T(2024, 8, 31, 12, 30)]),
        (["2024-08-31T12:30:00Z"], "TIMESTAMP WITH TIME ZONE", [T(2024, 8, 31, 12, 30, tzinfo=NORTH)]),
        (["2024-08-31T12:30:00Z", "2024-08-31 12:30"], "VARCHAR", ["2024-08-31T12:30:00Z", "2024-08-31 12:30"]),
        (["12:30", "23:59:59"], "TIME", [dt.time(12, 30), dt.time(23, 59, 59)]),
        (["25:30"], "VARCHAR", ["25:30"]),
        (["true", "FALSE"], "BOOLEAN", [True, False]),
        (["Yes", "no"], "BOOLEAN", [True, False]),
        (["NO", "NO"], "VARCHAR", ["NO", "NO"]),
        (["0", "1"], "BIGINT", [0, 1]),
        (["12", "n/a", "NULL", "-", ""], "BIGINT", [12, None, None, None, None]),
        (["2024-01-01", "#N/A"], "DATE", [D(2024, 1, 1), None]),
        (["Namibia", "NA"], "VARCHAR", ["Namibia", "NA"]),
        (["NA", "NA"], "VARCHAR", ["NA", "NA"]),
        (["", ""], "VARCHAR", [None, None]),
        (['say "hi"', "a,b\nc"], "VARCHAR", ['say "hi"', "a,b\nc"]),
    ],
)
def test_cells_get_the_type_that_holds_them_all(tmp_path, cells, kind, values):
    # A second column, so that empty cells are rows too.
    written = write_rows(["cell", "row"], [[cell, str(place)] for place, cell in enumerate(cells)], to=tmp_path / "0.parquet")
    assert written.columns[0].type == kind
    assert written.columns[0].is_empty == (not any(cells))
    with duckdb.connect() as database:
        found = database.execute(f"SELECT cell FROM '{written.path}'").fetchall()
    assert [value.astimezone(NORTH) if isinstance(value, T) and value.tzinfo else value for (value,) in found] == values


def test_values_of_a_format_that_knows_types_come_back():
    cells = [
        3.0,
        2.5,
        True,
        None,
        D(2024, 8, 31),
        T(2024, 8, 31, 12, 30),
        T(2024, 8, 31),
        Decimal("12.50"),
        dt.time(9, 5),
        " x ",
        float("nan"),
    ]
    assert [text_of(cell) for cell in cells] == [
        "3", "2.5", "true", "", "2024-08-31", "2024-08-31 12:30:00", "2024-08-31", "12.50", "09:05:00", "x", "",
    ]  # fmt: skip


def test_one_text_makes_a_column_text_however_late_it_comes():
    guess = Guess()
    for number in range(10_000):
        guess.add(str(number))
    assert guess.decide().type == "BIGINT"
    guess.add("twelve")
    assert guess.decide().type == "VARCHAR"


def test_rows_of_any_length_are_filled_and_names_told_apart(tmp_path):
    written = write_rows(["a", "A", "", "b"], [["1"], ["2", "3", "4", "5", "6"], []], to=tmp_path / "0.parquet")
    assert [column.name for column in written.columns] == ["a", "A_2", "column_3", "b", "column_5"]
    assert written.rows == 3
    headless = write_rows([], [["1", "x"]], to=tmp_path / "1.parquet")
    assert [column.name for column in headless.columns] == ["f0", "f1"]
    assert write_rows(["a"], [], to=tmp_path / "2.parquet") is None
    assert list(tmp_path.glob("*.csv")) == []
