"""Parquet: what the columns are, and the first rows."""

import datetime as dt
from decimal import Decimal

import pytest

from config.errors import ExtractionError
from ingestion.extract import Extracted, Limits
from ingestion.extract.tabular import read_sheets
from tests.samples.parquets import parquet_file

PENS = (
    "SELECT 'red|blue' AS name, 1.50::DECIMAL(9,2) AS price, DATE '2024-03-04' AS made, [1, 2] AS sizes, NULL::INTEGER AS remark, "
    "TIMESTAMP '2024-03-04 05:06:07' AS sold UNION ALL SELECT 'grün', 2::DECIMAL(9,2), NULL, NULL, NULL, NULL"
)


def test_columns_types_and_rows(read, tmp_path):
    extracted = read(parquet_file(PENS, tmp_path / "pens.parquet"), name="pens.parquet")
    assert extracted.markdown == (
        "2 rows, 6 columns\n\n| column | type |\n| --- | --- |\n| name | VARCHAR |\n| price | DECIMAL(9,2) |\n| made | DATE |\n"
        "| sizes | INTEGER[] |\n| remark | INTEGER |\n| sold | TIMESTAMP |\n\n"
        "| name | price | made | sizes | remark | sold |\n| --- | --- | --- | --- | --- | --- |\n"
        "| red\\|blue | 1.50 | 2024-03-04 | [1, 2] |  | 2024-03-04 05:06:07 |\n| grün | 2.00 |  |  |  |  |"
    )
    assert (extracted.title, extracted.media_type) == ("pens", "application/vnd.apache.parquet")


def test_values(tmp_path):
    path = tmp_path / "pens.parquet"
    parquet_file(PENS, path)
    (sheet,) = read_sheets(path, format="parquet", name=path.name, limits=Limits())
    assert (sheet.header, sheet.header_kind) == (("name", "price", "made", "sizes", "remark", "sold"), "stated")
    assert sheet.types is not None
    assert (sheet.types[1], sheet.total_rows) == ("DECIMAL(9,2)", 2)


def test_rows_of_values(tmp_path):
    path = tmp_path / "pens.parquet"
    parquet_file(PENS, path)
    (rows,) = [list(sheet.rows) for sheet in read_sheets(path, format="parquet", name=path.name, limits=Limits())]
    assert rows[0] == ["red|blue", Decimal("1.50"), dt.date(2024, 3, 4), [1, 2], None, dt.datetime(2024, 3, 4, 5, 6, 7)]


def test_large_files_are_read_in_a_child_and_bounded(sandbox, tmp_path):
    path = tmp_path / "large.parquet"
    parquet_file("SELECT i AS n, 'row ' || i AS text FROM range(1000000) t(i)", path)
    extracted = Extracted.from_json(sandbox.run({"op": "extract", "path": str(path), "name": path.name, "limits": {}})["extracted"])
    assert extracted.markdown.startswith("1,000,000 rows, 2 columns")
    assert "| 4000 | row 4000 |" in extracted.markdown
    assert extracted.warnings[0] == "Only the first 5,000 of 1,000,000 rows of the table were kept as text."


@pytest.mark.parametrize("cut", [10, 300, -5])
def test_damage(read, tmp_path, cut):
    content = parquet_file(PENS, tmp_path / "pens.parquet")
    with pytest.raises(ExtractionError, match=r"a\.parquet is damaged") as caught:
        read(content[:cut], name="a.parquet")
    assert caught.value.retires
