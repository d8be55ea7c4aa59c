"""What kinds of files become datasets, in real children, and what that costs."""

import datetime as dt

import duckdb
import pytest

from ingestion.datasets.columns import Column
from ingestion.extract.sandbox import Sandbox
from kb.models import Chunk
from tests.samples.workbooks import sheet_data, workbook

ROWS = [["day", "shop", "amount"], *([f"2024-08-{day:02d}", f"{day:04d}", day * 1.5] for day in range(1, 26))]
CHUNK = {
    "settings": {"strategy": "structure", "target_tokens": 218, "overlap_tokens": 17, "min_chars": 120},
    "tokenizer": "estimate",
    "reserve": 32,
}


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(size=1, languages=False) as children:
        yield children


@pytest.fixture
def read(sandbox, tmp_path):
    """`read(name, content, mode=…)` gives (reply, folder with what came out)."""

    def extract(name: str, content: bytes, **wanted):
        path, folder = tmp_path / "content", tmp_path / "outbox"
        path.write_bytes(content)
        folder.mkdir(exist_ok=True)
        limits = {"max_output_bytes": 64 * 1024 * 1024}
        request = {"op": "extract", "path": str(path), "name": name, "declared_type": None, "limits": limits, "chunk": CHUNK}
        return sandbox.run({**request, "outbox": str(folder), "tables": {"key": "k", **wanted}}), folder

    return extract


def names(reply) -> list[str]:
    return [file["details"]["dataset"] for file in reply["extracted"]["files"]]


def test_large_sheets_become_datasets_and_small_ones_stay_text(read):
    content = workbook({"Sales": sheet_data(ROWS), "Notes": sheet_data([["who", "what"], ["Ada", "prices are net"]])})
    reply, folder = read("shop.xlsx", content)
    assert names(reply) == ["shop"]
    with duckdb.connect() as database:
        found = database.execute(f"SELECT shop, day, amount FROM '{folder / '0.parquet'}' LIMIT 1").fetchall()
    assert found == [("0001", dt.date(2024, 8, 1), 1.5)]
    markdown = reply["extracted"]["markdown"]
    assert markdown.startswith("Dataset shop, from sheet “Sales” of shop.xlsx: 25 rows, 3 columns.")
    assert "## Notes" in markdown
    assert "prices are net" in markdown
    first, *others = reply["passages"]
    assert markdown[first["start"] : first["end"]].startswith("Dataset shop")
    assert "prices" not in markdown[first["start"] : first["end"]]
    assert "prices are net" in "".join(markdown[passage["start"] : passage["end"]] for passage in others)


def test_every_table_becomes_one_where_the_policy_says_so(read):
    content = workbook({"Sales": sheet_data(ROWS), "Notes": sheet_data([["who", "what"], ["Ada", "prices are net"]])})
    assert names(read("shop.xlsx", content, mode="tabular")[0]) == ["shop_sales", "shop_notes"]


def test_parquet_keeps_its_types(read, tmp_path):
    path = tmp_path / "given.parquet"
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT i::SMALLINT AS id, [i, i + 1] AS list, {'a': i} AS struct, i / 4 AS share, NULL::DATE AS day, 'x' AS \"ID 2\""
            f" FROM range(30) t(i)) TO '{path}' (FORMAT parquet)"
        )
    reply, _ = read("given.parquet", path.read_bytes())
    (file,) = reply["extracted"]["files"]
    kinds = {column["name"]: (column["type"], column["is_empty"]) for column in file["details"]["columns"]}
    assert kinds["id"] == ("SMALLINT", False)
    assert kinds["list"] == ("BIGINT[]", False)
    assert kinds["day"] == ("DATE", True)
    assert file["details"]["rows"] == 30
    assert len(reply["passages"]) == 1


@pytest.mark.parametrize("content", [b"name\nAda\nBen\n" * 1, b"day,amount\n", b"just one line\n"])
def test_lists_and_empty_tables_are_no_datasets(read, content):
    reply, _ = read("list.csv", content)
    assert reply["extracted"]["files"] == [] or len(reply["extracted"]["files"][0]["details"]["columns"]) == 1


def test_a_wide_table_is_described_within_the_budget(read):
    header = ",".join(f"a long name of column number {number}" for number in range(400))
    reply, _ = read("wide.csv", f"{header}\n{','.join(['1'] * 400)}\n{','.join(['2'] * 400)}\n".encode())
    (passage,) = reply["passages"]
    assert passage["tokens"] <= CHUNK["settings"]["target_tokens"]
    assert "400 columns" in reply["extracted"]["markdown"]
    assert "more." in reply["extracted"]["markdown"]


def test_a_table_too_wide_for_a_dataset_is_read_as_text(read):
    line = ",".join(f"c{number}" for number in range(1_200)).encode()
    reply, _ = read("wide.csv", line + b"\n" + b",".join([b"1"] * 1_200) + b"\n" + b",".join([b"2"] * 1_200) + b"\n")
    assert reply["extracted"]["files"] == []


def test_a_dataset_of_many_files_is_queried_within_the_childs_limits(sandbox, tmp_path):
    with duckdb.connect() as database:
        for number in range(300):
            database.execute(f"COPY (SELECT {number} AS n, 'x' AS t) TO '{tmp_path / f'{number}.parquet'}' (FORMAT parquet)")
    paths = [str(tmp_path / f"{number}.parquet") for number in range(300)]
    columns = [Column("n", "INTEGER").to_json(), Column("t", "VARCHAR").to_json()]
    view = {"names": ["many"], "columns": columns, "parts": list(range(300))}
    request = {"op": "query", "name": "q", "path": paths[0], "more": paths[1:], "limits": {"max_seconds": 20}, "max_rows": 10}
    assert sandbox.run({**request, "sql": "SELECT sum(n), count(*) FROM many", "views": [view]})["rows"] == [[44850, 300]]


@pytest.mark.soak
def test_a_csv_of_350_000_rows_stays_within_bounds(tmp_path):
    lines = (f"{i},2024-{i % 12 + 1:02d}-{i % 28 + 1:02d},{i % 400:04d},{i * 0.25:.2f},customer {i % 99_991}\n" for i in range(350_000))
    path = tmp_path / "big.csv"
    path.write_text("id,day,shop,amount,customer\n" + "".join(lines))
    (tmp_path / "out").mkdir()
    with Sandbox(size=1) as sandbox:
        request = {"op": "extract", "path": str(path), "name": "big.csv", "declared_type": None, "chunk": CHUNK, "tables": {"key": "k"}}
        reply = sandbox.run({**request, "limits": {"max_output_bytes": 512 * 1024 * 1024}, "outbox": str(tmp_path / "out")})
        assert reply["extracted"]["files"][0]["details"]["rows"] == 350_000
        assert len(reply["passages"]) == 1
        assert sandbox.peak_rss_mb < 400


@pytest.mark.django_db
def test_a_source_may_want_its_tables_as_text(upload, run_now, actor, knowledge_base, datasets):
    from kb import versioning

    document = dict(versioning.read(knowledge_base).document)
    upload(("sales.csv", b"day,amount\n2024-01-01,5\n2024-01-02,7\n"))
    run_now()
    assert set(datasets()) == {"sales"}
    document["sources"] = [{**document["sources"][0], "settings": {"tables": "text"}}]
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    run_now()
    assert datasets() == {}
    assert "| 2024-01-02 | 7 |" in Chunk.objects.get().text
