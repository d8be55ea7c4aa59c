"""Runs through the API: one at a time, watched, stopped, and asked before they remove much."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

NOTE = b"# Leave\n\nEvery employee has thirty days of leave a year.\n"


def test_a_run_from_start_to_end(editor, source_url, upload, work):
    upload(("a.md", NOTE), ("b.md", b"Travel is paid after the trip, with receipts.\n"))
    answer = editor.post(f"{source_url}/run")
    assert (answer.status_code, answer.json()["status"]) == (202, "queued")
    run = editor.get(f"/api/v1/runs/{answer.json()['run_id']}").json()
    assert (run["status"], run["position"], run["waiting_for"]) == ("queued", 1, "no worker on queue crawl")
    assert (run["version"], run["started_by"], run["trigger"]) == (1, "API key key of alice", "api")
    work(run["id"], until="embed")
    run = editor.get(f"/api/v1/runs/{run['id']}").json()
    assert (run["status"], run["position"], run["waiting_for"]) == ("running", None, "no worker on queue embed")
    assert (run["counters"]["found"], run["counters"]["open"]) == (2, 2)
    work(run["id"])
    run = editor.get(f"/api/v1/runs/{run['id']}").json()
    assert (run["status"], run["stop_reason"], run["waiting_for"]) == ("succeeded", "completed", None)
    assert (run["counters"]["ingested"], run["counters"]["open"]) == (2, 0)
    assert run["finished_at"]


def test_a_second_start_is_409_and_names_the_run(editor, source_url):
    first = editor.post(f"{source_url}/run").json()
    second = editor.post(f"{source_url}/run")
    assert second.status_code == 409
    assert second.json()["run_id"] == first["run_id"]
    assert second.json()["started_at"]


def test_a_disabled_source_is_409(actor, editor, knowledge_base, source_url):
    from kb import versioning

    document = dict(versioning.read(knowledge_base).document)
    document["sources"] = [{**document["sources"][0], "enabled": False}]
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    answer = editor.post(f"{source_url}/run")
    assert answer.status_code == 409
    assert "disabled" in answer.json()["detail"]


def test_a_source_that_lists_nothing_cannot_be_run(editor, kb_url, knowledge_base):
    from ingestion.services.pushes import direct_source

    url = f"{kb_url}/sources/{direct_source(knowledge_base).id}"
    assert editor.post(f"{url}/run").status_code == 409
    assert editor.post(f"{url}/preview").status_code == 409


def test_cancel_once(editor, viewer, source_url):
    run_id = editor.post(f"{source_url}/run").json()["run_id"]
    assert viewer.post(f"/api/v1/runs/{run_id}/cancel").status_code == 403
    answer = editor.post(f"/api/v1/runs/{run_id}/cancel")
    assert (answer.status_code, answer.json()["status"], answer.json()["stop_reason"]) == (200, "cancelled", "cancelled")
    assert editor.post(f"/api/v1/runs/{run_id}/cancel").status_code == 409
    assert editor.post(f"{source_url}/run").status_code == 202


def test_the_history_is_newest_first_and_hides_what_is_no_run(editor, viewer, source_url, upload, run_now):
    upload(("a.md", NOTE))
    first = run_now()
    assert editor.delete(f"{source_url}/documents").status_code == 200
    second = run_now()
    rows = viewer.get(f"{source_url}/runs").json()["items"]
    assert [row["id"] for row in rows] == [str(second.id), str(first.id)]
    page = viewer.get(f"{source_url}/runs?limit=1").json()
    assert len(page["items"]) == 1
    following = viewer.get(f"{source_url}/runs?limit=1&cursor={page['next_cursor']}").json()
    assert following["items"][0]["id"] == str(first.id)
    assert viewer.get(f"{source_url}/runs?limit=201").status_code == 400
    assert viewer.get(f"{source_url}/runs?cursor=nonsense").status_code == 400


def test_the_history_reaps_the_dead(editor, source_url):
    from ingestion.models import IngestionRun

    run_id = editor.post(f"{source_url}/run").json()["run_id"]
    long_ago = timezone.now() - timedelta(hours=1)
    IngestionRun.objects.filter(id=run_id).update(eligible_since=long_ago, progressed_at=long_ago, created_at=long_ago)
    (run,) = editor.get(f"{source_url}/runs").json()["items"]
    assert (run["status"], run["error"]) == ("failed", "Run abandoned")


@pytest.fixture
def braked(source, upload, run_now, work):
    """A run that would remove 12 of 13 documents, and so waits for an answer."""
    from ingestion.models import IngestionRun
    from kb.models import Document

    upload(*[(f"{number}.md", b"Note number %d, about the leave of employees.\n" % number) for number in range(13)])
    run_now()
    # An upload source loses no document by itself: the files go as pages of a site would.
    Document.objects.filter(source=source).exclude(key="0.md").update(file=None, missed_runs=1)
    run = run_now()
    assert run.status == IngestionRun.Status.NEEDS_CONFIRMATION
    return run


def test_confirm_removes_what_was_planned(editor, viewer, source_url, braked):
    run = editor.get(f"/api/v1/runs/{braked.id}").json()
    assert (run["status"], run["planned_removals"]) == ("needs_confirmation", 12)
    assert viewer.post(f"/api/v1/runs/{braked.id}/confirm").status_code == 403
    answer = editor.post(f"/api/v1/runs/{braked.id}/confirm")
    assert (answer.status_code, answer.json()["documents"], answer.json()["status"]) == (200, 12, "succeeded")
    assert len(editor.get(f"{source_url}/documents?state=gone").json()["items"]) == 12
    assert editor.post(f"/api/v1/runs/{braked.id}/confirm").status_code == 409
    assert editor.post(f"/api/v1/runs/{braked.id}/reject").status_code == 409


def test_confirm_keeps_what_came_back(editor, source, braked):
    from kb.models import Document

    back = Document.objects.get(source=source, key="3.md")
    Document.objects.filter(id=back.id).update(seen_at=timezone.now())
    assert editor.get(f"/api/v1/runs/{braked.id}").json()["planned_removals"] == 11
    assert editor.post(f"/api/v1/runs/{braked.id}/confirm").json()["documents"] == 11
    assert editor.get(f"/api/v1/documents/{back.id}").json()["state"] == "indexed"


def test_a_confirmation_in_the_way_of_a_run_keeps_the_plan(editor, source_url, braked):
    run_id = editor.post(f"{source_url}/run").json()["run_id"]
    answer = editor.post(f"/api/v1/runs/{braked.id}/confirm")
    assert (answer.status_code, answer.json()["run_id"]) == (409, run_id)
    assert editor.get(f"/api/v1/runs/{braked.id}").json()["planned_removals"] == 12
    editor.post(f"/api/v1/runs/{run_id}/cancel")
    assert editor.post(f"/api/v1/runs/{braked.id}/confirm").json()["documents"] == 12


def test_reject_forgets_the_plan(editor, source, source_url, braked):
    from kb.models import Document

    answer = editor.post(f"/api/v1/runs/{braked.id}/reject")
    assert (answer.status_code, answer.json()["documents"]) == (200, 12)
    assert not Document.objects.filter(source=source, missed_runs__gt=0).exists()
    assert editor.get(f"{source_url}/documents?state=gone").json()["items"] == []


def test_the_next_complete_run_replaces_an_unanswered_plan(editor, braked, run_now):
    run_now()
    assert editor.get(f"/api/v1/runs/{braked.id}").json()["status"] == "succeeded"
    assert editor.post(f"/api/v1/runs/{braked.id}/confirm").status_code == 409


def test_foreign_and_absent_runs_are_the_same_404(editor, stranger, anonymous, source_url):
    run_id = editor.post(f"{source_url}/run").json()["run_id"]
    for suffix in ("", "/documents", "/events"):
        foreign, absent = stranger.get(f"/api/v1/runs/{run_id}{suffix}"), stranger.get(f"/api/v1/runs/{uuid4()}{suffix}")
        assert foreign.status_code == absent.status_code == 404
        assert foreign.content == absent.content
        assert anonymous.get(f"/api/v1/runs/{run_id}{suffix}").status_code == 401
        assert stranger.get(f"/api/v1/runs/nonsense{suffix}").content == absent.content
    for action in ("cancel", "confirm", "reject"):
        assert stranger.post(f"/api/v1/runs/{run_id}/{action}").status_code == 404
    for path in ("run", "preview"):
        assert stranger.post(f"{source_url}/{path}").status_code == 404
    assert stranger.get(f"{source_url}/runs").status_code == 404
    assert stranger.delete(f"{source_url}/documents").status_code == 404


def test_the_finish_stage_does_not_close_a_confirmation_under_way(source):
    """A maintenance run has no open item, so the sweep wakes that stage."""
    from ingestion import sweeping
    from ingestion.services.runs import maintaining
    from ingestion.stages import slices

    with maintaining(source) as run:
        sweeping.sweep()
        slices.work("finish", run.id, f"{run.id}:{uuid4().hex}")
        run.refresh_from_db()
        assert run.is_open
    run.refresh_from_db()
    assert (run.status, run.stop_reason) == ("succeeded", "completed")


def test_a_run_costs_what_its_source_says_where_the_model_has_no_price(actor, editor, knowledge_base, upload, run_now):
    from decimal import Decimal

    from kb import versioning

    document = dict(versioning.read(knowledge_base).document)
    (entry,) = document["sources"]
    settings = {**entry["settings"], "cost_per_thousand_segments": 0.5}
    versioning.publish(knowledge_base, document={**document, "sources": [{**entry, "settings": settings}]}, expected=1, actor=actor)
    upload(("a.md", NOTE))
    counters = editor.get(f"/api/v1/runs/{run_now().id}").json()["counters"]
    assert counters["embeddings_computed"] == 1
    assert Decimal(counters["cost"]) == Decimal("0.0005")
