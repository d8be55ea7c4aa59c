"""What became of each document of a run, as pages and as CSV."""

import csv
import io

import pytest

from ingestion.api.verdicts import COLUMNS, _cell


@pytest.fixture
def run(upload, run_now, source):
    from kb.models import Document

    upload(("a.md", b"Every employee has thirty days of leave.\n"), ("b.md", b"Travel is paid after the trip.\n"))
    run_now()
    upload(("c.md", b"The office is closed on Sundays.\n"))
    document = Document.objects.get(source=source, key="b.md")
    Document.objects.filter(id=document.id).update(content_hash=None, quarantined_hash=bytes(document.file.sha256))
    return run_now()


def test_each_document_has_its_verdict_and_reason(viewer, run):
    rows = viewer.get(f"/api/v1/runs/{run.id}/documents").json()["items"]
    assert {row["name"]: row["verdict"] for row in rows} == {"a.md": "unchanged", "b.md": "failed", "c.md": "ingested"}
    failed = next(row for row in rows if row["name"] == "b.md")
    assert failed["reason"] == "quarantined"
    assert "Change the file" in failed["error"]


def test_filters_and_pages(viewer, run):
    url = f"/api/v1/runs/{run.id}/documents"
    assert [row["name"] for row in viewer.get(f"{url}?verdict=failed").json()["items"]] == ["b.md"]
    assert [row["name"] for row in viewer.get(f"{url}?reason=quarantined").json()["items"]] == ["b.md"]
    assert [row["name"] for row in viewer.get(f"{url}?q=C.MD").json()["items"]] == ["c.md"]
    assert viewer.get(f"{url}?verdict=lost").status_code == 400
    first = viewer.get(f"{url}?limit=2").json()
    second = viewer.get(f"{url}?limit=2&cursor={first['next_cursor']}").json()
    assert [row["name"] for row in first["items"] + second["items"]] == ["a.md", "b.md", "c.md"]


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_csv_by_accept(viewer, run, async_get):
    from ingestion.models import RunItem

    RunItem.objects.filter(run=run, key="c.md").update(title='=HYPERLINK("http://x")')
    answer, body = async_get(f"/api/v1/runs/{run.id}/documents", viewer, accept="text/csv")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert answer["Content-Disposition"] == f'attachment; filename="run-{run.id}.csv"'
    rows = list(csv.DictReader(io.StringIO(body.decode())))
    assert tuple(rows[0]) == COLUMNS
    assert [row["name"] for row in rows] == ["a.md", "b.md", "c.md"]
    assert rows[2]["title"] == '\'=HYPERLINK("http://x")'
    answer, body = async_get(f"/api/v1/runs/{run.id}/documents?verdict=failed", viewer, accept="text/csv")
    assert len(body.splitlines()) == 2


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "|cmd", "\t=1", "\r=1", "  =1", "%0A"])
def test_no_cell_is_a_formula(text):
    assert _cell(text) == f"'{text}"


@pytest.mark.parametrize(("value", "cell"), [("", ""), (None, ""), (-5, -5), ("plain", "plain"), (["a", "b"], "a b"), ("a=b", "a=b")])
def test_other_cells_stay(value, cell):
    assert _cell(value) == cell


def test_an_unknown_form_is_406(viewer, run):
    assert viewer.get(f"/api/v1/runs/{run.id}/documents", HTTP_ACCEPT="application/pdf").status_code == 406


def test_errors_of_the_csv_are_problems(viewer):
    from uuid import uuid4

    answer = viewer.get(f"/api/v1/runs/{uuid4()}/documents", HTTP_ACCEPT="text/csv")
    assert (answer.status_code, answer["Content-Type"], answer.json()["code"]) == (404, "application/problem+json", "not_found")
