"""Sources as they stand: when they run next, and the log of their schedules."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from ingestion import claims, fires
from ingestion.models import IngestionRun, SourceSchedule
from ingestion.services.pushes import direct_source
from kb import versioning


@pytest.fixture
def scheduled(knowledge_base, actor, source):
    document = dict(versioning.read(knowledge_base).document)
    document["sources"] = [{**document["sources"][0], "cron": "30 3 * * *"}]
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    return source


@pytest.fixture
def fired(scheduled):
    """A schedule whose last time was missed and made good, by a run that failed later."""
    SourceSchedule.objects.update(due_at=timezone.now() - timedelta(days=3))
    fire = fires.fire(scheduled.id)
    claims.finish(fire.run, status="failed", stop_reason="", error="The storage was full.")
    return fire


def test_a_source_without_a_schedule(viewer, source, source_url):
    answer = viewer.get(source_url).json()
    assert (answer["id"], answer["type"], answer["name"], answer["enabled"]) == (str(source.id), "upload", "files", True)
    assert (answer["documents"], answer["cron"], answer["next_run_at"], answer["last_fire"]) == (0, None, None, None)
    assert viewer.get(f"{source_url}/fires").json() == {"items": [], "next_cursor": None}


def test_when_it_runs_next(viewer, scheduled, source_url, upload):
    upload(("a.md", b"# Leave\n\nThirty days.\n"))
    answer = viewer.get(source_url).json()
    assert (answer["documents"], answer["cron"], answer["last_fire"]) == (1, "30 3 * * *", None)
    assert answer["next_run_at"].endswith("T03:30:00Z")


def test_the_log_holds_the_start_and_the_failure(viewer, fired, source_url):
    run = IngestionRun.objects.get()
    failed, started = viewer.get(f"{source_url}/fires").json()["items"]
    due = fired.due_at.isoformat().replace("+00:00", "Z")
    assert (started["outcome"], started["due_at"], started["run_id"], started["error"]) == ("started", due, str(run.id), None)
    assert (failed["outcome"], failed["due_at"], failed["run_id"]) == ("failed", due, str(run.id))
    assert failed["error"] == "The storage was full."
    assert viewer.get(source_url).json()["last_fire"] == failed
    page = viewer.get(f"{source_url}/fires?limit=1").json()
    assert page["items"] == [failed]
    assert viewer.get(f"{source_url}/fires?limit=1&cursor={page['next_cursor']}").json()["items"] == [started]


def test_all_sources_of_a_knowledge_base(viewer, kb_url, knowledge_base, fired):
    direct_source(knowledge_base)
    pushed, files = viewer.get(f"{kb_url}/sources").json()["items"]
    assert (pushed["type"], pushed["cron"]) == ("direct", None)
    assert (files["type"], files["last_fire"]["outcome"]) == ("upload", "failed")


def test_a_source_that_left_is_not_there(editor, kb_url, source_url, knowledge_base, actor, scheduled):
    document = {**versioning.read(knowledge_base).document, "sources": []}
    versioning.publish(knowledge_base, document=document, expected=2, actor=actor)
    for path in ("", "/fires", "/runs"):
        absent = editor.get(f"{kb_url}/sources/{uuid4()}{path}")
        assert editor.get(f"{source_url}{path}").content == absent.content
    assert editor.get(f"{kb_url}/sources").json()["items"] == []


def test_no_request_writes_a_schedule_or_its_log(editor, source_url, fired):
    for path in ("", "/fires"):
        for method in ("post", "put", "patch", "delete"):
            assert getattr(editor, method)(f"{source_url}{path}", {}, format="json").status_code == 405, (method, path)


def test_a_publication_says_what_it_removed(editor, kb_url, source, upload, run_now):
    upload(("a.md", b"# Leave\n\nThirty days.\n"), ("b.md", b"# Travel\n\nIs paid.\n"))
    run_now()
    document = editor.get(kb_url).json()["document"]
    kept = editor.put(f"{kb_url}?version=1", {**document, "description": "x"}, format="json").json()
    assert kept["removed_sources"] == []
    answer = editor.put(f"{kb_url}?version=2", {**document, "sources": []}, format="json").json()
    gone = {"id": str(source.id), "name": "files", "documents": 2, "chunks": 2, "files": 2}
    assert answer["removed_sources"] == [gone]
    assert editor.get(kb_url).json()["removed_sources"] == []
    back = editor.post(f"{kb_url}/rollback?version=3", {"to": 2}, format="json").json()
    assert (back["removed_sources"], len(back["document"]["sources"])) == ([], 1)
    away = editor.post(f"{kb_url}/rollback?version=4", {"to": 3}, format="json").json()
    assert [source["documents"] for source in away["removed_sources"]] == [0]


def test_a_stale_publication_is_told_before_its_sources_are_looked_at(editor, kb_url):
    document = editor.get(kb_url).json()["document"]
    removed = editor.put(f"{kb_url}?version=1", {**document, "sources": []}, format="json")
    assert removed.status_code == 200
    assert editor.put(f"{kb_url}?version=1", document, format="json").status_code == 409


def test_the_id_of_a_source_is_spelled_one_way_everywhere(editor, kb_url, source_url):
    from uuid import UUID

    listed = editor.get(f"{kb_url}/sources").json()["items"]
    (entry,) = editor.get(kb_url).json()["document"]["sources"]
    started = editor.post(f"{source_url}/run").json()
    assert entry["id"] in {row["id"] for row in listed}
    assert started["source_id"] == entry["id"] == str(UUID(entry["id"]))
