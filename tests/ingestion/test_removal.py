"""A source that is removed, retyped, disabled or renamed, and a knowledge base that is deleted: what goes, what stays, and what stops."""

from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection

from config import queues
from config.errors import Conflict, NotFound
from config.redis import redis_client
from config.tenancy import carried
from ingestion import claims, housekeeping
from ingestion.models import EmbeddedText, IngestionRun, ProviderCall, RunItem
from ingestion.services.files import store_files
from ingestion.services.runs import purge_source, start_run
from ingestion.stages import slices
from kb import services, versioning
from kb.access import actor_for_user
from kb.embedding_models import register_model
from kb.models import Chunk, Document, File, KnowledgeBase, Source, User
from tests.servers.openai_server import ScriptedServer

pytestmark = pytest.mark.django_db
STAGES = ("crawl", "extract", "embed", "publish", "finish")


def work(run, *stages: str) -> IngestionRun:
    for stage in stages or STAGES:
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    return IngestionRun.objects.get(id=run.id)


@pytest.fixture
def publish(knowledge_base, actor):
    def change(sources=None, **values):
        knowledge_base.refresh_from_db()
        document = dict(versioning.read(knowledge_base).document)
        document["sources"] = [{**document["sources"][0], **values}] if sources is None else sources
        return versioning.publish(knowledge_base, document=document, expected=knowledge_base.current.number, actor=actor)

    return change


@pytest.fixture
def filled(source, alice):
    """Twelve published files."""
    store_files(source, [SimpleUploadedFile(f"{n}.md", f"# Note {n}\n\nLeave of kind {n}.\n".encode()) for n in range(12)], user=alice)
    assert work(start_run(source)).status == "succeeded"
    return source


def left_of(source_id) -> list[int]:
    documents = Document.objects.filter(source_id=source_id)
    return [
        documents.count(),
        Chunk.objects.filter(document__source=source_id).count(),
        File.objects.filter(documents__in=documents).count(),
    ]


def test_a_removed_source_takes_all_it_had_and_its_files(filled, publish):
    publish(sources=[])
    housekeeping.clear_removed_sources()
    assert not Source.objects.filter(id=filled.id).exists()
    for model in (Document, Chunk, File, IngestionRun, RunItem):
        assert not model.objects.exists(), model


def test_a_purge_leaves_files(filled):
    assert purge_source(filled) == 12
    assert File.objects.count() == 12


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_clearing_that_is_cut_off_goes_on_with_what_is_left(filled, publish, monkeypatch):
    from django.db import connections

    monkeypatch.setattr(housekeeping, "BATCH", 5)
    monkeypatch.setattr(housekeeping, "ITEM_BATCH", 5)
    publish(sources=[])
    with connections["owner"].cursor() as cursor:  # the second batch dies: its connection is cut within the transaction
        cursor.execute(
            "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF (SELECT count(*) FROM kb_document) < 7 THEN"
            " PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NULL; END'"
        )
        cursor.execute("CREATE TRIGGER deadly AFTER DELETE ON kb_document FOR EACH STATEMENT EXECUTE FUNCTION die()")
    try:
        with pytest.raises(OperationalError):
            housekeeping.clear_removed_sources()
        connection.close()
        assert left_of(filled.id) == [7, 7, 7]
    finally:
        with connections["owner"].cursor() as cursor:
            cursor.execute("DROP FUNCTION die() CASCADE")
    housekeeping.clear_removed_sources()
    housekeeping.clear_removed_sources()
    assert not Source.objects.exists()
    assert left_of(filled.id) == [0, 0, 0]
    assert not RunItem.objects.exists()


def site(source) -> dict:
    return {"id": str(source.id), "name": "site", "type": "web", "web": {"start_url": "https://a.example/"}}


def test_another_type_under_the_same_id_starts_empty(filled, publish):
    publish(sources=[site(filled)])
    kept = Source.objects.get(id=filled.id)
    assert (kept.kind, kept.name, kept.state) == ("web", "site", "active")
    assert left_of(kept.id) == [0, 0, 0]
    heir = Source.objects.get(state="removing")
    assert left_of(heir.id) == [12, 12, 12]
    housekeeping.clear_removed_sources()
    assert list(Source.objects.all()) == [kept]
    for model in (Document, Chunk, File):
        assert not model.objects.exists(), model
    publish(sources=[{"id": str(filled.id), "name": "files", "type": "upload"}])
    assert Source.objects.get(id=filled.id).kind == "upload"


def test_a_run_of_the_old_type_ends_and_its_plan_is_void(filled, publish):
    braked = start_run(filled)
    claims.finish(braked, status="needs_confirmation", stop_reason="completed", planned_removals=[str(uuid4())])
    run = start_run(filled)
    publish(sources=[site(filled)])
    run.refresh_from_db()
    braked.refresh_from_db()
    assert (run.status, run.error) == ("cancelled", "Its source got another type")
    assert (braked.status, braked.planned_removals) == ("succeeded", [])
    with pytest.raises(Conflict, match="become one of type web"):
        start_run(filled)  # whoever read the row before


def test_a_file_that_comes_while_its_source_goes_is_refused(source, publish, alice):
    publish(sources=[])
    result = store_files(source, [SimpleUploadedFile("a.md", b"# Late\n\nToo late.\n")], user=alice)
    assert (result.documents, len(result.rejected)) == ([], 1)
    assert not Document.objects.exists()


def test_renaming_moves_and_loses_nothing(filled, publish, knowledge_base, actor):
    before = set(Chunk.objects.values_list("id", flat=True))
    run = start_run(filled)
    publish(name="papers")
    document = {**versioning.read(knowledge_base).document, "name": "Renamed"}
    versioning.publish(knowledge_base, document=document, expected=2, actor=actor)
    assert work(run).counters["unchanged"] == 12
    assert set(Chunk.objects.values_list("id", flat=True)) == before
    assert Source.objects.get().name == "papers"


def test_a_run_that_is_open_when_its_source_is_disabled_goes_on_to_its_end(filled, publish):
    run = start_run(filled)
    publish(enabled=False)
    assert work(run).status == "succeeded"
    with pytest.raises(Conflict, match="disabled"):
        start_run(Source.objects.get())


@pytest.mark.parametrize("way", ["removed", "deleted", "organization deleted"])
def test_a_lost_source_lets_nothing_be_written(source, publish, knowledge_base, organization, alice, way):
    store_files(source, [SimpleUploadedFile("a.md", b"# Note\n\nLeave.\n")], user=alice)
    run = work(start_run(source), "crawl", "extract", "embed")
    assert RunItem.objects.get().stage == "embedded"
    lose(way, publish, knowledge_base, organization)
    work(run, "publish", "finish")
    assert not Chunk.objects.exists()
    for guard in (claims.writing, claims.updating):
        with pytest.raises(claims.ClaimLost), guard(run):
            pass
    assert not claims.check(run)
    assert not claims.keep(run)
    with pytest.raises(NotFound):
        start_run(source)


def lose(way: str, publish, knowledge_base, organization) -> None:
    if way == "removed":
        publish(sources=[])
    elif way == "deleted":
        services.delete_knowledge_base(knowledge_base)
    else:
        services.delete_organization(organization)


@pytest.mark.parametrize("way", ["removed", "deleted", "organization deleted"])
def test_the_housekeeping_is_woken_at_once(source, publish, knowledge_base, organization, way, django_capture_on_commit_callbacks):
    assert not redis_client().exists(queues.DEFAULT + "\x06\x163")
    with django_capture_on_commit_callbacks(execute=True):
        lose(way, publish, knowledge_base, organization)
    waiting = redis_client().lrange(queues.DEFAULT + "\x06\x163", 0, -1)  # kombu's list of normal priority
    assert [b"ingestion.housekeep" in message for message in waiting] == [True]
    housekeeping.housekeep()
    assert not Source.objects.exists()
    assert KnowledgeBase.objects.exists() == (way == "removed")


@pytest.fixture
def paying(knowledge_base, actor, source, alice):
    """A run that has 24 texts to pay for, two a call, with a provider that takes its time."""
    with ScriptedServer(dimension=384, delay=0.2) as provider:
        operator = actor_for_user(User.objects.create_superuser("root"))
        model = {"name": "scripted", "provider": "openai", "model": "scripted", "dimension": 384, "max_input_tokens": 256}
        parameters = {"batch_texts": 2}
        register_model(operator, document={**model, "endpoint": provider.endpoint, "parameters": parameters}, installation=True)
        document = {**versioning.read(knowledge_base).document, "embedding_model": "scripted"}
        versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
        store_files(source, [SimpleUploadedFile(f"{n}.md", f"# Note {n}\n\nLeave of kind {n}.\n".encode()) for n in range(24)], user=alice)
        run = work(start_run(source), "crawl", "extract", "extract", "extract")
        assert EmbeddedText.objects.filter(vector=None).count() == 24
        yield run, provider


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
@pytest.mark.parametrize("way", ["removed", "deleted"])
def test_nothing_is_paid_after_its_source_is_lost(paying, publish, knowledge_base, organization, way):
    from concurrent.futures import ThreadPoolExecutor

    from tests.fleet import wait_for

    run, provider = paying

    def embed() -> None:
        try:
            work(run, "embed")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        embedding = pool.submit(carried(embed))
        wait_for(lambda: len(provider.requests) >= 2, seconds=20, what="the second call", every=0.01)
        lose(way, publish, knowledge_base, organization)
        announced = ProviderCall.objects.count()
        embedding.result(timeout=20)
    assert ProviderCall.objects.count() == announced
    assert len(provider.requests) <= announced < 12
    assert not Chunk.objects.exists()
    housekeeping.housekeep()
    assert not Source.objects.exists()
    paid = EmbeddedText.objects.filter(vector__isnull=False).count()
    assert paid == len(provider.paid_texts())  # what was in flight is kept for whoever wants it next
