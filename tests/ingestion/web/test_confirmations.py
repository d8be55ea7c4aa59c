"""A braked deletion of a site's pages, and what people say to it."""

import threading

import pytest
from django.db import connections

from ingestion.models import IngestionRun, RunItem
from ingestion.services import removals
from kb.models import Document
from tests.ingestion.web.conftest import advance, living, put, run_source, url_of, verdicts
from tests.servers.site import page, paragraphs, redirect, refusal

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])
PAGES = [f"/{number}" for number in range(12)]


@pytest.fixture
def braked(web, site):
    """A source whose last run would remove 12 of 13 documents, which the site does not link any more and still gives: (source, run)."""
    put(site, "/", *PAGES)
    for path in PAGES:
        put(site, path)
    source = web(settings={"tombstone_after_missed_runs": 1})
    run_source(source)
    put(site, "/")
    run = run_source(source)
    assert (run.status, len(run.planned_removals)) == ("needs_confirmation", 12)
    assert len(living(source, site)) == 13
    return source, run


def confirm(client, run, query: str = "") -> dict:
    answer = client.post(f"/api/v1/runs/{run.id}/confirm{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def remove_all(site, *kept: str) -> None:
    for path in PAGES:
        if path not in kept:
            site.remove(path)


def test_a_run_that_needs_confirmation_says_so_and_lists_its_plan(braked, site, client):
    _, run = braked
    assert any("12 of 13 documents" in warning for warning in run.warnings)
    first = client.get(f"/api/v1/runs/{run.id}/planned-removals?limit=10").json()
    rest = client.get(f"/api/v1/runs/{run.id}/planned-removals", {"cursor": first["next_cursor"]}).json()
    names = {row["name"] for row in (*first["items"], *rest["items"])}
    assert names == {site.url(path) for path in PAGES}
    assert (len(first["items"]), rest["next_cursor"]) == (10, None)


def test_a_confirmation_asks_again_and_removes_what_is_gone(braked, site, client):
    source, run = braked
    remove_all(site, "/3")
    site.put("/4", refusal(503))
    site.put("/5", redirect("/", 301))
    site.put("/6", page("Page", paragraphs("six"), robots="noindex"))
    answer = confirm(client, run)
    assert (answer["status"], answer["documents"], answer["kept"], answer["complete"]) == ("succeeded", 10, 2, True)
    assert living(source, site) == {"/", "/3", "/4"}
    deletion = IngestionRun.objects.get(id=answer["deletion_run_id"])
    assert (deletion.kind, deletion.status) == ("maintenance", "partial")
    said = verdicts(deletion, site)
    assert (said["/3"], said["/4"], said["/6"]) == ("skipped still_there", "failed server_error", "removed missed")
    there = Document.objects.get(source=source, key=site.url("/3"))
    assert (there.missed_runs, there.last_run_id) == (0, deletion.id)
    assert run_source(source).status == "succeeded"  # what is left is too little for the brake, or missed anew


def test_the_run_shows_who_confirmed_and_each_removed_document(braked, site, client):
    _, run = braked
    remove_all(site)
    confirm(client, run)
    shown = client.get(f"/api/v1/runs/{run.id}").json()
    answer = shown["answer"]
    assert (answer["decision"], answer["by"], answer["planned"], answer["removed"], answer["kept"]) == (
        "confirmed",
        "API key key of alice",
        12,
        12,
        0,
    )
    assert answer["at"] > shown["finished_at"]
    assert (shown["counters"]["removed"], shown["counters"]["found"]) == (12, 13)
    rows = client.get(f"/api/v1/runs/{run.id}/documents?verdict=removed").json()["items"]
    assert {row["name"] for row in rows} == {site.url(path) for path in PAGES}
    assert all("was removed" in row["error"] for row in rows)
    deletion = client.get(f"/api/v1/runs/{answer['run_id']}").json()
    assert (deletion["started_by"], deletion["counters"]["removed"], deletion["status"]) == ("API key key of alice", 12, "succeeded")


def test_who_confirms_unasked_removes_also_what_the_site_still_gives(braked, site, client):
    source, run = braked
    site.forget()
    assert confirm(client, run, "?unasked=true")["documents"] == 12
    assert living(source, site) == {"/"}
    assert not site.log


def test_what_the_rules_leave_out_is_not_asked_for(braked, site, client):
    source, run = braked
    site.put("/robots.txt", "User-agent: *\nDisallow: /1\n", content_type="text/plain")
    site.forget()
    assert confirm(client, run)["documents"] == 3  # /1, /10 and /11
    assert living(source, site) == {"/", *PAGES} - {"/1", "/10", "/11"}
    assert not site.requests("/1")


def test_a_site_that_is_down_loses_nothing_by_a_confirmation(braked, site, client):
    source, run = braked
    site.stop()
    answer = confirm(client, run)
    assert (answer["documents"], answer["kept"]) == (0, 12)
    assert IngestionRun.objects.get(id=answer["deletion_run_id"]).status == "failed"
    assert len(living(source, site)) == 13


def test_a_page_for_every_address_loses_nothing_by_a_confirmation(braked, site, client):
    source, run = braked
    site.fault(lambda request: True, page("Back soon", ["We are working on the site. It is back in an hour."]))
    assert confirm(client, run)["documents"] == 0
    assert len(living(source, site)) == 13


def test_a_long_confirmation_goes_on_by_slices_and_survives_a_kill(braked, site, client, settings):
    _, run = braked
    remove_all(site)
    settings.ENV = settings.ENV.model_copy(update={"slice_seconds": 0.05})
    site.put("/*", refusal(404), delay=0.03)
    answer = client.post(f"/api/v1/runs/{run.id}/confirm")
    assert (answer.status_code, answer.json()["complete"]) == (202, False)
    deletion = IngestionRun.objects.get(id=answer.json()["deletion_run_id"])
    assert client.get(f"/api/v1/runs/{run.id}").json()["answer"]["removed"] is None
    settings.ENV = settings.ENV.model_copy(update={"slice_seconds": 5.0})
    done = advance(deletion)
    assert (done.status, done.counters["removed"]) == ("succeeded", 12)
    asked = site.counts()
    assert all(asked[path] <= 2 for path in PAGES)
    assert RunItem.objects.filter(run=run, verdict="removed").count() == 12
    assert client.get(f"/api/v1/runs/{run.id}").json()["answer"]["removed"] == 12


def test_a_confirmation_removes_what_no_run_saw_since(braked, site, client):
    source, run = braked
    remove_all(site, "/3")
    put(site, "/", "/3")
    site.put("/sitemap.xml", refusal(503))  # so this run concludes nothing, and the plan stays
    run_source(source)
    assert client.get(f"/api/v1/runs/{run.id}").json()["planned_removals"] == 11
    assert confirm(client, run)["documents"] == 11
    assert living(source, site) == {"/", "/3"}


def test_a_rejection_counts_anew_and_names_who_rejected(braked, site, client):
    source, run = braked
    assert client.post(f"/api/v1/runs/{run.id}/reject").json()["documents"] == 12
    answer = client.get(f"/api/v1/runs/{run.id}").json()["answer"]
    assert (answer["decision"], answer["by"], answer["removed"]) == ("rejected", "API key key of alice", None)
    assert len(living(source, site)) == 13
    assert not Document.objects.filter(source=source, missed_runs__gt=0).exists()
    put(site, "/", *PAGES)
    assert run_source(source).counters["unchanged"] == 13


def test_of_many_answers_at_once_one_is_taken(braked, site, client):
    source, run = braked
    remove_all(site)
    gate, codes = threading.Barrier(6), []

    def send(word: str) -> None:
        gate.wait()
        codes.append(client.post(f"/api/v1/runs/{run.id}/{word}").status_code)
        connections.close_all()

    threads = [threading.Thread(target=send, args=(word,)) for word in ("confirm", "reject", "confirm") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(codes) == [200, *[409] * 5]
    decision = client.get(f"/api/v1/runs/{run.id}").json()["answer"]["decision"]
    assert len(living(source, site)) == (1 if decision == "confirmed" else 13)
    assert not IngestionRun.objects.filter(source=source, finished_at=None).exists()


def test_a_confirmation_that_is_cancelled_stops_and_says_so(braked, site, client, settings):
    source, run = braked
    remove_all(site)
    settings.ENV = settings.ENV.model_copy(update={"slice_seconds": 0.0})
    answer = client.post(f"/api/v1/runs/{run.id}/confirm").json()
    cancelled = client.post(f"/api/v1/runs/{answer['deletion_run_id']}/cancel").json()
    assert (cancelled["status"], cancelled["error"]) == ("cancelled", "Cancelled by API key key of alice")
    assert len(living(source, site)) == 13
    settings.ENV = settings.ENV.model_copy(update={"slice_seconds": 5.0})
    assert run_source(source).status == "needs_confirmation"  # planned anew by the next complete run


def test_an_api_key_is_named_by_what_it_starts_and_stops(web, site, client):
    put(site, "/")
    source = web()
    started = client.post(f"{url_of(source)}/run").json()
    stopped = client.post(f"/api/v1/runs/{started['run_id']}/cancel").json()
    assert (stopped["started_by"], stopped["error"]) == ("API key key of alice", "Cancelled by API key key of alice")


def test_planning_is_not_answered_by_a_run_that_waits_for_nothing(web, site, client):
    put(site, "/")
    run = run_source(web())
    assert client.get(f"/api/v1/runs/{run.id}/planned-removals").json()["items"] == []
    assert removals.count_planned(run) == 0
    assert client.post(f"/api/v1/runs/{run.id}/confirm").status_code == 409


def test_whatever_people_do_at_once_the_source_has_one_owner_and_ends_free(braked, site, client):
    source, run = braked
    remove_all(site)
    calls = [
        lambda: client.post(f"{url_of(source)}/run"),
        lambda: client.delete(f"{url_of(source)}/documents"),
        lambda: client.post(f"/api/v1/runs/{run.id}/confirm"),
        lambda: client.post(f"/api/v1/runs/{run.id}/reject"),
        lambda: [
            client.post(f"/api/v1/runs/{each}/cancel")
            for each in IngestionRun.objects.filter(source=source, finished_at=None).values_list("id", flat=True)
        ],
    ]
    gate, codes = threading.Barrier(2 * len(calls)), []

    def send(call) -> None:
        gate.wait()
        answers = call()
        codes.extend(answer.status_code for answer in (answers if isinstance(answers, list) else [answers]))
        connections.close_all()

    threads = [threading.Thread(target=send, args=(call,)) for call in calls * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert set(codes) <= {200, 202, 409}
    for each in IngestionRun.objects.filter(source=source, finished_at=None):
        advance(each)
    assert not IngestionRun.objects.filter(source=source, finished_at=None).exists()
    answer = IngestionRun.objects.get(id=run.id).answer
    assert answer is None or answer["decision"] in ("confirmed", "rejected")
    if answer is not None and answer["decision"] == "rejected":
        assert "removed" not in answer
    for document in Document.objects.filter(source=source, tombstoned_at__isnull=False):
        assert not document.chunks.exists()


def test_the_admin_lists_the_plan_offers_both_ways_and_shows_the_answer(braked, site, alice):
    from django.test import Client
    from django.urls import reverse

    source, run = braked
    remove_all(site, "/3")
    alice.is_staff = True
    alice.save()
    browser = Client()
    browser.force_login(alice)
    shown = reverse("admin:ingestion_ingestionrun_change", args=[run.id])
    before = browser.get(shown).content.decode()
    assert all(site.url(path) in before for path in PAGES)
    assert "Remove without asking" in before
    asked = browser.get(reverse("admin:ingestion_ingestionrun_confirm_run", args=[run.id])).content.decode()
    assert "asked for again" in asked
    done = browser.post(reverse("admin:ingestion_ingestionrun_confirm_run", args=[run.id]), follow=True).content.decode()
    assert "11 documents were removed, 1 stay." in done
    assert "confirmed by alice" in done
    assert "11 removed, 1 kept" in done
    assert living(source, site) == {"/", "/3"}
