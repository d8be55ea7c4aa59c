"""Points are written before their chunks and removed after them; whatever fails on the way, nothing is lost or doubled."""

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.utils import timezone

from config.tenancy import carried
from ingestion import claims, housekeeping
from ingestion.models import IngestionRun, ProviderCall, RunItem
from ingestion.services.files import store_files
from ingestion.services.pushes import ingest_text
from ingestion.services.runs import purge_source, start_run
from kb import services, store_removals
from kb.models import Chunk, Document, Source
from kb.models.derived import EmbeddingUse
from kb.models.stores import StoreRemoval, StoreUse
from tests.ingestion.stores.outside import KEY, ask, points_of, put, work

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])
LEAVE = "Everybody has thirty days of leave a year."
NOTICE = "The notice period is three months to the end of a quarter."


def chunks(knowledge_base) -> set[int]:
    return set(Chunk.objects.filter(knowledge_base=knowledge_base).values_list("id", flat=True))


def rows_here(knowledge_base) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM embedding_256 WHERE kb = %s", [knowledge_base.id])
        return cursor.fetchone()[0]


@pytest.mark.parametrize("mode", ["vector", "hybrid", "keyword"])
def test_what_is_published_is_found(outside, actor, qdrant, mode):
    assert put(outside, LEAVE).status == "succeeded"
    assert put(outside, NOTICE, "notice").status == "succeeded"
    assert points_of(qdrant, outside) == chunks(outside)
    assert rows_here(outside) == 0
    assert not EmbeddingUse.objects.filter(kb=outside.id).exists()
    answer = ask(actor, outside, "thirty days of leave", mode=mode, explain=True)
    assert answer.hits[0].text == LEAVE
    if mode != "keyword":
        assert all(hit.scores.vector is not None for hit in answer.hits)
        assert any("qdrant" in plan for plan in answer.explanation["plans"])


def test_a_point_says_whose_it_is(outside, qdrant):
    put(outside, LEAVE)
    put(outside, LEAVE + " Since 2020.")
    [collection] = qdrant.client.get_collections().collections
    assert collection.name == f"lectern_s{outside.space_id}"
    [point], _ = qdrant.client.scroll(collection.name, with_payload=True)
    document = Document.objects.get(knowledge_base=outside)
    assert point.payload == {
        "organization": str(outside.organization_id),
        "knowledge_base": str(outside.id),
        "document": str(document.id),
        "generation": document.generation,
    }
    assert document.generation == 2


def test_a_replaced_document_leaves_no_point_behind(outside, actor, qdrant):
    put(outside, f"{LEAVE}\n\n# Notice\n\n{NOTICE}")
    before, seen = chunks(outside), len(qdrant.seen)
    put(outside, f"Nobody has leave.\n\n# Notice\n\n{NOTICE}")
    after = chunks(outside)
    assert points_of(qdrant, outside) == after
    assert before != after
    assert not StoreRemoval.objects.exists()
    # New points stand before old ones go: at no moment does a search find nothing.
    calls = [(method, path) for method, path, _ in qdrant.seen[seen:] if "/points?" in path or "/points/delete" in path]
    assert [method for method, _ in calls] == ["PUT", "POST"]
    assert "thirty days" not in ask(actor, outside, "leave").hits[0].text


def test_what_is_published_again_unchanged_writes_no_point(outside, qdrant):
    put(outside, LEAVE)
    seen = len(qdrant.seen)
    put(outside, LEAVE)
    assert [path for _, path, _ in qdrant.seen[seen:]] == []
    assert points_of(qdrant, outside) == chunks(outside)


def test_a_crash_between_points_and_chunks_leaves_what_nobody_sees(outside, actor, qdrant):
    put(outside, LEAVE)
    run = work(ingest_text(outside, text=LEAVE + " And more.", document_name="leave", replace=True), "extract", "embed")
    qdrant.after_writing = carried(lambda: claims.cancel(run))
    work(run, "publish")
    [orphan] = points_of(qdrant, outside) - chunks(outside)
    [row] = StoreRemoval.objects.all()
    assert row.chunks == [orphan]
    assert [hit.text for hit in ask(actor, outside, "leave").hits] == [LEAVE]
    assert store_removals.drain() == 0  # not due: the publication might only be slow
    StoreRemoval.objects.update(due_at=timezone.now())
    assert store_removals.drain() == 1
    assert points_of(qdrant, outside) == chunks(outside)
    assert not StoreRemoval.objects.exists()


def test_a_publication_whose_points_were_taken_back_is_done_again(outside, qdrant):
    run = work(ingest_text(outside, text=LEAVE, document_name="leave"), "extract", "embed")

    def take_back():
        qdrant.after_writing = lambda: None
        StoreRemoval.objects.update(lease_until=timezone.now() + timedelta(minutes=1))

    qdrant.after_writing = carried(take_back)
    work(run, "publish")
    item = RunItem.objects.get(run=run)
    assert (item.stage, chunks(outside)) == (RunItem.Stage.EMBEDDED, set())
    assert "taken back" in item.error
    RunItem.objects.update(not_before=None)
    assert work(run, "publish", "finish").status == "succeeded"
    StoreRemoval.objects.update(lease_until=None, due_at=timezone.now())
    store_removals.drain()
    assert points_of(qdrant, outside) == chunks(outside) != set()


def test_a_store_that_is_away_is_waited_for(outside, actor, qdrant):
    put(outside, LEAVE)
    qdrant.failing = 503
    run = put(outside, NOTICE)
    item = RunItem.objects.get(run=run)
    assert run.is_open
    assert (item.stage, item.verdict) == (RunItem.Stage.EMBEDDED, "")
    assert item.not_before > timezone.now()
    assert "The store qdrant" in item.error
    assert item.error == run.error
    assert [text for (text,) in Chunk.objects.values_list("text")] == [LEAVE]
    qdrant.failing = 0
    RunItem.objects.update(not_before=None)
    assert work(run, "publish", "finish").status == "succeeded"
    assert [text for (text,) in Chunk.objects.values_list("text")] == [NOTICE]
    StoreRemoval.objects.update(due_at=timezone.now())
    store_removals.drain()
    assert points_of(qdrant, outside) == chunks(outside)


def test_old_points_whose_removal_fails_go_later(outside, qdrant):
    put(outside, LEAVE)
    old = chunks(outside)
    qdrant.failing, qdrant.failing_path = 500, "/points/delete"
    assert put(outside, NOTICE).status == "succeeded"
    assert points_of(qdrant, outside) == old | chunks(outside)
    [row] = StoreRemoval.objects.all()
    assert (row.attempts, set(row.chunks), row.lease_until) == (1, old, None)
    assert "500" in row.error
    assert row.due_at > timezone.now()
    qdrant.failing = 0
    StoreRemoval.objects.update(due_at=timezone.now())
    housekeeping.housekeep()
    assert points_of(qdrant, outside) == chunks(outside)
    assert not StoreRemoval.objects.exists()


def test_a_wrong_key_fails_the_document_with_the_reason_and_costs_nothing_again(outside, actor, qdrant):
    put(outside, LEAVE)
    services.set_secret(organization=actor.organization, name="QDRANT", value="wrong-" + KEY)
    run = put(outside, NOTICE)
    item = RunItem.objects.get(run=run)
    assert (run.status, item.verdict, item.reason) == ("failed", "failed", "store_error")
    assert "answered 401. Check its credential" in item.error
    assert KEY not in item.error
    assert [text for (text,) in Chunk.objects.values_list("text")] == [LEAVE]
    services.set_secret(organization=actor.organization, name="QDRANT", value=KEY)  # takes effect without a restart
    paid = ProviderCall.objects.count()
    assert put(outside, NOTICE).status == "succeeded"
    assert ProviderCall.objects.count() == paid
    assert [text for (text,) in Chunk.objects.values_list("text")] == [NOTICE]


def test_a_knowledge_base_that_is_deleted_leaves_the_store(make_outside, hashing_model, qdrant):
    going, staying = make_outside("Going"), make_outside("Staying")
    put(going, LEAVE)
    put(staying, LEAVE)
    services.delete_knowledge_base(going)
    housekeeping.housekeep()
    assert points_of(qdrant, going) == set()
    assert points_of(qdrant, staying) == chunks(staying) != set()
    assert not StoreRemoval.objects.exists()
    assert list(StoreUse.objects.values_list("kb", flat=True)) == [staying.id]


def test_an_organization_goes_after_its_points(outside, organization, qdrant):
    put(outside, LEAVE)
    services.delete_organization(organization)
    qdrant.failing = 503
    housekeeping.clear_deleted()
    store_removals.drain()
    organization.refresh_from_db()  # its key is needed until the points are gone
    qdrant.failing = 0
    StoreRemoval.objects.update(due_at=timezone.now())
    store_removals.drain()
    assert points_of(qdrant, outside) == set()
    housekeeping.clear_deleted()
    assert not type(organization).objects.filter(id=organization.id).exists()


def test_an_organization_does_not_wait_for_ever(outside, organization, qdrant, caplog):
    put(outside, LEAVE)
    services.delete_organization(organization)
    qdrant.failing = 503
    housekeeping.clear_deleted()
    StoreRemoval.objects.update(created_at=timezone.now() - timedelta(days=2))
    housekeeping.clear_deleted()
    assert not type(organization).objects.filter(id=organization.id).exists()
    assert not StoreRemoval.objects.exists()
    assert str(outside.id) in caplog.text


def test_a_purge_and_a_source_that_leaves(outside, actor, qdrant, alice):
    source = Source.objects.get(knowledge_base=outside, name="files")
    store_files(source, [SimpleUploadedFile("a.txt", LEAVE.encode()), SimpleUploadedFile("b.txt", NOTICE.encode())], user=alice)
    stages = ("crawl", "extract", "embed", "publish", "finish")
    assert work(start_run(source, user=alice), *stages).status == "succeeded"
    assert len(points_of(qdrant, outside)) == 2
    purge_source(source, user=alice)
    before = chunks(outside)
    assert points_of(qdrant, outside) == before  # a purge forgets what was read, and what answers stays until then
    assert work(start_run(source, user=alice), *stages).status == "succeeded"
    assert points_of(qdrant, outside) == chunks(outside)
    assert len(chunks(outside)) == 2
    Source.objects.filter(id=source.id).update(state=Source.State.REMOVING)
    housekeeping.housekeep()
    assert points_of(qdrant, outside) == chunks(outside) == set()
    assert IngestionRun.objects.filter(source=source, status="failed").count() == 0
