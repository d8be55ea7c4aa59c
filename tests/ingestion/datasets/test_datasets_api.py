"""A table that was uploaded is a dataset: found by search, queried with SQL, gone with its file."""

import json

import pytest

from kb.models import Blob, Chunk, Dataset, DatasetPart, Document
from tests.ingestion.datasets.conftest import SALES

pytestmark = pytest.mark.django_db


def test_a_csv_becomes_a_dataset_with_careful_types(sales):
    assert (sales["rows"], sales["files"]) == (30, 1)
    assert {column["name"]: column["type"] for column in sales["columns"]} == {
        "day": "DATE",
        "region": "VARCHAR",
        "amount": "DECIMAL(18,2)",
        "zip": "VARCHAR",
    }


def test_a_query_answers_with_names_types_and_numbers(sales, ask):
    answer = ask(sales, "SELECT region, sum(amount) AS total, min(day) AS first FROM sales GROUP BY region ORDER BY region")
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert [column["name"] for column in body["columns"]] == ["region", "total", "first"]
    assert body["rows"] == [["North", 232.5, "2024-08-01"], ["South", 247.5, "2024-08-02"]]
    assert (body["row_count"], body["truncated"]) == (2, False)
    assert [(source["dataset"], source["name"], source["row_count"]) for source in body["sources"]] == [(sales["id"], "sales", 30)]
    assert ask(sales, "SELECT count(*) FROM dataset").json()["rows"] == [[30]]


def test_rows_are_capped_and_the_answer_says_so(sales, ask):
    body = ask(sales, "SELECT * FROM sales ORDER BY day", max_rows=7).json()
    assert (len(body["rows"]), body["truncated"]) == (7, True)
    assert ask(sales, "SELECT * FROM sales", max_rows=30).json()["truncated"] is False
    assert ask(sales, "SELECT 1", max_rows=0).status_code == 400


def test_one_chunk_describes_it_and_search_names_the_dataset(sales, editor, knowledge_base):
    (chunk,) = Chunk.objects.filter(knowledge_base=knowledge_base)
    assert chunk.text.startswith("Dataset sales, from sales.csv: 30 rows, 4 columns.")
    assert "amount (DECIMAL(18,2): 1.50 to 30.50)" in chunk.text
    assert "| 2024-08-01 | North | 1.50 | 00001 |" in chunk.text
    body = {"query": "amount by region", "knowledge_bases": [str(knowledge_base.id)], "mode": "keyword"}
    (hit,) = editor.post("/api/v1/search", body, format="json").json()["hits"]
    assert hit["dataset"] == {"id": sales["id"], "name": "sales"}
    other = {"query": "no such thing", "knowledge_bases": [str(knowledge_base.id)], "mode": "keyword"}
    assert editor.post("/api/v1/search", other, format="json").json()["hits"] == []


def test_the_dataset_lists_its_files(sales, editor):
    (document,) = Document.objects.all()
    detail = editor.get(f"/api/v1/datasets/{sales['id']}").json()
    assert {key: detail[key] for key in sales} == sales
    (part,) = detail["parts"]
    assert (part["document_id"], part["name"], part["rows"]) == (str(document.id), "sales.csv", 30)
    assert editor.get("/api/v1/datasets", {"document_id": str(document.id)}).json()["items"][0]["id"] == sales["id"]


def test_a_replaced_file_replaces_the_rows_under_the_same_id(sales, upload, run_now, datasets, ask):
    upload(("Sales.csv", b"day,amount,shop\n2025-01-01,5,7\n2025-01-02,6,8\n"))
    assert ask(sales, "SELECT count(*) FROM sales").json()["rows"] == [[30]]  # until the next run
    run_now()
    new = datasets()["sales"]
    assert (new["id"], new["rows"]) == (sales["id"], 2)
    assert ask(new, "SELECT sum(amount), max(shop) FROM sales").json()["rows"] == [[11, 8]]
    assert DatasetPart.objects.count() == 1


def test_a_file_that_is_no_table_any_more_takes_its_dataset_away(sales, upload, run_now, datasets, ask):
    upload(("sales.csv", b"day,region,amount,zip\n"))  # no row is left
    run_now()
    assert datasets() == {}
    assert ask(sales, "SELECT 1").status_code == 404


def test_a_deleted_file_takes_its_dataset_away_at_once(sales, editor, source_url, datasets, ask):
    file = editor.get(f"{source_url}/files").json()["items"][0]
    assert editor.delete(f"{source_url}/files/{file['file_id']}").status_code == 200
    assert datasets() == {}
    assert ask(sales, "SELECT 1").status_code == 404
    assert DatasetPart.objects.count() == 0


def test_nothing_is_left_over_when_the_collector_has_been(sales, editor, source_url):
    from datetime import timedelta

    from django.core.files.storage import default_storage
    from django.utils import timezone

    from ingestion.parts import collect_datasets
    from kb import blobs

    part = DatasetPart.objects.get()
    old = timezone.now() - timedelta(days=2)
    Blob.objects.update(touched_at=old)
    blobs.collect()
    assert default_storage.exists(part.blob.storage_key)
    file = editor.get(f"{source_url}/files").json()["items"][0]
    editor.delete(f"{source_url}/files/{file['file_id']}")
    Dataset.objects.update(created_at=old)
    assert collect_datasets() == 1
    from ingestion.models import RunItem

    RunItem.objects.all().delete()
    Blob.objects.update(touched_at=old)
    blobs.collect()
    assert not default_storage.exists(part.blob.storage_key)
    assert (Dataset.objects.count(), Blob.objects.count()) == (0, 0)


def test_a_removed_source_takes_its_datasets_and_their_bytes_along(sales, actor, knowledge_base, datasets, ask):
    from datetime import timedelta

    from django.utils import timezone

    from ingestion.housekeeping import clear_removed_sources
    from kb import blobs, versioning

    document = {**versioning.read(knowledge_base).document, "sources": []}
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    assert datasets() == {}  # from the moment of the publication
    assert ask(sales, "SELECT 1").status_code == 404
    clear_removed_sources()
    assert (Dataset.objects.count(), DatasetPart.objects.count()) == (0, 0)
    Blob.objects.update(touched_at=timezone.now() - timedelta(days=2))
    blobs.collect()
    assert Blob.objects.count() == 0


def test_an_unchanged_file_is_not_read_again_and_keeps_its_dataset(sales, run_now, datasets):
    run = run_now()
    assert run.counters["unchanged"] == 1
    assert datasets()["sales"]["updated_at"] == sales["updated_at"]


def test_a_change_of_chunk_size_describes_it_anew(sales, actor, knowledge_base, run_now, datasets):
    from kb import versioning

    document = dict(versioning.read(knowledge_base).document)
    versioning.publish(knowledge_base, document={**document, "chunking": {"target_tokens": 64}}, expected=1, actor=actor)
    assert run_now().status == "succeeded"
    (chunk,) = Chunk.objects.filter(knowledge_base=knowledge_base)
    assert chunk.tokens <= 64
    assert chunk.text.startswith("Dataset sales")
    assert datasets()["sales"]["id"] == sales["id"]


def test_two_datasets_are_joined_under_names_of_their_own(upload, run_now, datasets, ask, sales):
    upload(("regions.csv", b"region;head\nNorth;Ada\nSouth;Ben\n"))
    run_now()
    regions = datasets()["regions"]
    sql = "SELECT head, count(*) FROM sales JOIN regions USING (region) GROUP BY ALL ORDER BY 1"
    answer = ask(sales, sql, datasets=[{"id": regions["id"]}])
    assert answer.json()["rows"] == [["Ada", 15], ["Ben", 15]]
    again = ask(sales, "SELECT 1", datasets=[{"id": sales["id"]}])
    assert (again.status_code, again.json()["errors"][0]["path"]) == (400, "datasets")
    renamed = ask(sales, "SELECT count(*) FROM sales JOIN b USING (day)", datasets=[{"id": sales["id"], "name": "b"}])
    assert renamed.json()["rows"] == [[30]]


def test_who_may_ask(sales, ask, viewer, stranger, datasets):
    assert ask(sales, "SELECT count(*) FROM sales", client=viewer).status_code == 200
    assert datasets(stranger) == {}
    foreign = ask(sales, "SELECT 1", client=stranger)
    absent = ask({"id": str(sales["source_id"])}, "SELECT 1", client=stranger)
    assert foreign.status_code == absent.status_code == 404
    assert foreign.content == absent.content


def test_a_dataset_of_somebody_else_cannot_be_joined(sales, ask, stranger, other_organization, mallory, hashing_model, work):
    from django.core.files.uploadedfile import SimpleUploadedFile

    from kb import services
    from kb.access import actor_for_user
    from kb.models import Source

    document = {"name": "Mine", "sources": [{"name": "files", "type": "upload"}]}
    made = services.create_knowledge_base(actor_for_user(mallory), document=document)
    own = Source.objects.get(knowledge_base=made)
    url = f"/api/v1/knowledge-bases/{made.id}/sources/{own.id}"
    stranger.post(f"{url}/files", {"files": SimpleUploadedFile("mine.csv", SALES.encode())}, format="multipart")
    work(stranger.post(f"{url}/run").json()["run_id"])
    (mine,) = stranger.get("/api/v1/datasets").json()["items"]
    assert ask(mine, "SELECT count(*) FROM mine", client=stranger).json()["rows"] == [[30]]
    assert ask(mine, "SELECT 1", client=stranger, datasets=[{"id": sales["id"]}]).status_code == 404
    refused = ask(mine, "SELECT * FROM sales", client=stranger)
    assert refused.json()["reason"] == "unknown_table"


def test_values_are_json_whatever_they_are(sales, ask):
    sql = (
        "SELECT 9007199254740993 AS big, 1.5::DECIMAL(4,2) AS exact, 'nan'::DOUBLE AS nan, '\\x00a'::BLOB AS bytes, [1, NULL] AS list,"
        " {'a': DATE '2024-01-01'} AS struct, TIMESTAMPTZ '2024-01-01 10:00:00+02' AS zoned,"
        " INTERVAL 5 MONTH AS span, [INTERVAL 3 DAY] AS spans,"
        " 0.123456789012345678901234567890::DECIMAL(38,30) AS long"
    )
    answer = ask(sales, sql)
    assert answer.status_code == 200, answer.content
    values = dict(zip((column["name"] for column in answer.json()["columns"]), answer.json()["rows"][0], strict=True))
    assert values == {
        "big": "9007199254740993",
        "exact": 1.5,
        "nan": "nan",
        "bytes": "AGE=",
        "list": [1, None],
        "struct": {"a": "2024-01-01"},
        "zoned": "2024-01-01T08:00:00+00:00",
        "span": "5 months",
        "spans": ["3 days"],
        "long": "0.123456789012345678901234567890",
    }
    json.dumps(answer.json(), allow_nan=False)
