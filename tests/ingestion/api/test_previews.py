"""A preview: what a run would do, with nothing written."""

import threading

import pytest

from ingestion.services import previews

NOTE = b"# Leave\n\nEvery employee has thirty days of leave a year.\n"


def test_new_changed_unchanged_and_failed(editor, source_url, upload, run_now):
    upload(("same.md", NOTE), ("edited.md", b"Travel is paid after the trip, with receipts.\n"))
    run_now()
    upload(("edited.md", b"Travel is paid before the trip, without receipts.\n"), ("new.md", b"The office is closed on Sundays.\n"))
    answer = editor.post(f"{source_url}/preview")
    assert answer.status_code == 200, answer.content
    seen = answer.json()
    assert seen["complete"] is True
    assert seen["counts"] == {"new": 1, "changed": 1, "gone": 0, "failed": 0, "unchanged": 1}
    assert {row["name"]: row["change"] for row in seen["documents"]} == {"edited.md": "changed", "new.md": "new"}
    assert seen["chunks"] == seen["embeddings"] == 2
    assert seen["tokens"] > 5
    assert seen["cost"] is None


def test_nothing_is_written(editor, source_url, upload):
    from ingestion.models import EmbeddedText, IngestionRun, ProviderCall, RunItem
    from kb.models import Blob, Chunk

    upload(("a.md", NOTE))
    tables = (EmbeddedText, IngestionRun, ProviderCall, RunItem, Blob, Chunk)
    before = [table.objects.count() for table in tables]
    assert editor.post(f"{source_url}/preview").status_code == 200
    assert [table.objects.count() for table in tables] == before


def test_the_estimate_is_what_the_run_then_does(editor, source_url, upload, run_now, hashing_model):
    from decimal import Decimal

    type(hashing_model).objects.filter(id=hashing_model.id).update(price_per_million_tokens=Decimal("20"))
    upload(("a.md", b"word and another word. " * 800), ("b.md", NOTE))
    seen = editor.post(f"{source_url}/preview").json()
    counters = run_now().counters
    assert (seen["chunks"], seen["embeddings"]) == (counters["chunks"], counters["embeddings_computed"])
    assert Decimal(seen["cost"]) == Decimal(20) * seen["tokens"] / 1_000_000


def test_paid_vectors_cost_nothing(editor, source_url, upload, run_now):
    upload(("a.md", NOTE))
    run_now()
    editor.delete(f"{source_url}/documents")
    seen = editor.post(f"{source_url}/preview").json()
    assert (seen["counts"]["changed"], seen["chunks"], seen["embeddings"], seen["tokens"]) == (1, 1, 0, 0)


def test_bounds_end_it_and_then_nothing_is_gone(source, upload):
    upload(("a.md", NOTE), ("b.md", NOTE + b"more\n"))
    seen = previews.preview_source(source, max_documents=1)
    assert (seen.complete, len(seen.documents)) == (False, 1)
    seen = previews.preview_source(source, max_seconds=0)
    assert (seen.complete, seen.documents) == (False, [])


def test_the_fourth_at_a_time_is_sent_away(editor, source_url):
    places = [previews._place() for _ in range(previews.AT_ONCE)]
    for place in places:
        place.__enter__()
    try:
        answer = editor.post(f"{source_url}/preview")
    finally:
        for place in places:
            place.__exit__(None, None, None)
    assert (answer.status_code, answer["Retry-After"]) == (429, "30")
    assert editor.post(f"{source_url}/preview").status_code == 200


def test_a_viewer_may_not(viewer, source_url):
    assert viewer.post(f"{source_url}/preview").status_code == 403


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_previews_side_by_side(editor, source_url, upload):
    from django.db import connections

    upload(("a.md", NOTE))
    codes: list[int] = []

    def look() -> None:
        codes.append(editor.post(f"{source_url}/preview").status_code)
        connections.close_all()

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [200, 200, 200]
