"""The admin of ingestion: pages render, actions ask first and go through the services, and nobody sees another organization's rows."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.conftest import make_user

NOTE = b"# Leave\n\nEvery employee has thirty days of leave a year.\n"


def client_of(user) -> Client:
    user.is_staff = True
    user.save()
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def operator(db) -> Client:
    from kb.models import User

    client = Client()
    client.force_login(User.objects.create_superuser("root", password="a long password of the tests"))
    return client


@pytest.fixture
def run(source, alice):
    from uuid import uuid4

    from ingestion.models import IngestionRun
    from ingestion.services.files import store_files
    from ingestion.services.runs import start_run
    from ingestion.stages import slices

    store_files(source, [SimpleUploadedFile("a.md", NOTE)], user=alice)
    run = start_run(source, user=alice)
    for stage in ("crawl", "extract", "embed", "publish", "finish"):
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    return IngestionRun.objects.get(id=run.id)


def url(name: str, *args: object) -> str:
    return reverse(f"admin:{name}", args=args)


@pytest.mark.parametrize("model", ["ingestionrun", "runitem", "embeddedtext", "providercall", "workerheartbeat", "queuebeat", "source"])
def test_lists_and_rows_render_for_an_operator(operator, run, model):
    from django.apps import apps
    from django.utils import timezone

    from ingestion.models import QueueBeat, WorkerHeartbeat

    now = timezone.now()
    WorkerHeartbeat.objects.create(name="embed@here", queues=["embed"], pid=1, started_at=now, seen_at=now)
    QueueBeat.objects.create(queue="embed", sent_at=now)
    label = "kb" if model == "source" else "ingestion"
    listed = operator.get(url(f"{label}_{model}_changelist"))
    assert listed.status_code == 200
    row = apps.get_model(label, model)._default_manager.first()
    assert row is not None
    shown = operator.get(url(f"{label}_{model}_change", row.pk))
    assert shown.status_code == 200
    assert operator.get(url(f"{label}_{model}_changelist") + "?q=a").status_code == 200


def test_a_run_links_to_its_verdicts(operator, run):
    page = operator.get(url("ingestion_ingestionrun_change", run.id)).content.decode()
    link = f"{url('ingestion_runitem_changelist')}?run__id__exact={run.id}"
    assert link in page
    verdicts = operator.get(f"{link}&verdict__exact=ingested").content.decode()
    assert "a.md" in verdicts
    assert "a.md" not in operator.get(f"{link}&verdict__exact=failed").content.decode().partition("<tbody")[2]


def test_a_run_offers_what_can_be_done_with_it(operator, run):
    from ingestion.models import IngestionRun

    def offered(**values) -> set[str]:
        IngestionRun.objects.filter(id=run.id).update(**values)
        page = operator.get(url("ingestion_ingestionrun_change", run.id)).content.decode()
        names = ("cancel_run", "confirm_run", "reject_run")
        return {name for name in names if url(f"ingestion_ingestionrun_{name}", run.id) in page}

    assert offered() == set()
    assert offered(status="needs_confirmation") == {"confirm_run", "reject_run"}
    assert offered(status="running", finished_at=None) == {"cancel_run"}


def test_a_run_is_told_in_rows(operator, run):
    from ingestion.admin.runs import counter_rows
    from ingestion.models import IngestionRun

    counters = {"found": 1200, "bytes": 2048, "cost": None, "failed": {"too_large": 2}}
    assert counter_rows(counters) == [("found", "1,200"), ("size", "2.0\xa0KB"), ("failed: too large", "2")]
    IngestionRun.objects.filter(id=run.id).update(warnings=["<b>odd</b>"])
    page = operator.get(url("ingestion_ingestionrun_change", run.id)).content.decode()
    assert "<li>&lt;b&gt;odd&lt;/b&gt;</li>" in page
    assert '<td class="pr-6">ingested</td><td class="text-right">1</td>' in page


def test_the_sidebar_holds_what_the_person_may_open(operator, alice, source):
    def pages(client: Client) -> dict[str, list[str]]:
        groups = client.get(url("kb_source_changelist")).context["sidebar_navigation"]
        return {group["title"]: [item["title"] for item in group["items"]] for group in groups}

    assert list(pages(operator)) == ["Knowledge", "Retrieval", "Access", "Operations"]
    assert "Workers" in pages(operator)["Operations"]
    assert pages(client_of(alice))["Knowledge"][0] == "Knowledge bases"
    assert "Workers" not in pages(client_of(alice))["Operations"]


def test_run_now_asks_first(alice, source):
    from ingestion.models import IngestionRun

    client = client_of(alice)
    page = client.get(url("kb_source_run_now", source.id))
    assert "starts a run" in page.content.decode()
    assert not IngestionRun.objects.exists()
    done = client.post(url("kb_source_run_now", source.id), follow=True)
    assert "is queued" in done.content.decode()
    assert IngestionRun.objects.get().requested_by == alice
    again = client.post(url("kb_source_run_now", source.id), follow=True)
    assert "under way" in again.content.decode()


def test_cancel_through_the_admin(alice, source):
    from ingestion.models import IngestionRun
    from ingestion.services.runs import start_run

    run = start_run(source)
    client = client_of(alice)
    assert "What it has published stays" in client.get(url("ingestion_ingestionrun_cancel_run", run.id)).content.decode()
    client.post(url("ingestion_ingestionrun_cancel_run", run.id))
    assert IngestionRun.objects.get(id=run.id).status == "cancelled"


def test_confirm_says_what_it_will_remove(alice, source, run):
    from ingestion.models import IngestionRun
    from kb.models import Document

    document = Document.objects.get(source=source)
    Document.objects.filter(id=document.id).update(seen_at=run.created_at.replace(year=2020))
    IngestionRun.objects.filter(id=run.id).update(status="needs_confirmation", planned_removals=[str(document.id)])
    client = client_of(alice)
    page = client.get(url("ingestion_ingestionrun_confirm_run", run.id)).content.decode()
    assert "removes 1 documents" in page
    assert "keeps" not in page
    done = client.post(url("ingestion_ingestionrun_confirm_run", run.id), follow=True)
    assert "1 documents were removed" in done.content.decode()
    assert Document.objects.get(id=document.id).tombstoned_at is not None
    rejected = client.post(url("ingestion_ingestionrun_reject_run", run.id), follow=True)
    assert "does not wait for a confirmation" in rejected.content.decode()


def test_purge_says_what_goes(alice, source, run):
    from kb.models import Document

    client = client_of(alice)
    assert "of the 1 documents" in client.get(url("kb_source_purge", source.id)).content.decode()
    client.post(url("kb_source_purge", source.id))
    assert Document.objects.get(source=source).content_hash is None


def test_files_are_uploaded_and_deleted(alice, source):
    from kb.models import Document

    client = client_of(alice)
    address = url("kb_source_show_files", source.id)
    sent = [SimpleUploadedFile("a.md", NOTE), SimpleUploadedFile("empty.md", b"")]
    done = client.post(address, {"action": "upload", "files": sent}, follow=True).content.decode()
    assert "1 file was stored. The next run takes it in." in done
    assert "empty.md is empty" in done
    document = Document.objects.get(source=source)
    assert "a.md" in client.get(address).content.decode()
    done = client.post(address, {"action": "delete", "file": str(document.id)}, follow=True).content.decode()
    assert "a.md was deleted" in done
    assert not Document.objects.filter(source=source).exists()
    assert "nothing here" in client.post(address, {"action": "delete", "file": "nonsense"}, follow=True).content.decode()


def test_a_viewer_reads_and_changes_nothing(bob, source, run):
    client = client_of(bob)
    assert client.get(url("ingestion_ingestionrun_change", run.id)).status_code == 200
    page = client.get(url("kb_source_show_files", source.id)).content.decode()
    assert "a.md" in page
    assert 'type="file"' not in page
    refused = client.post(url("kb_source_purge", source.id), follow=True).content.decode()
    assert "Ask for the role of an editor" in refused
    refused = client.post(url("kb_source_show_files", source.id), {"action": "upload"}, follow=True).content.decode()
    assert "Ask for the role of an editor" in refused


def test_staff_of_another_organization_see_no_rows(mallory, source, run):
    client = client_of(mallory)
    for model in ("ingestion_ingestionrun", "ingestion_runitem", "ingestion_embeddedtext", "ingestion_providercall", "kb_source"):
        page = client.get(url(f"{model}_changelist"))
        assert page.status_code == 200
        assert list(page.context["cl"].result_list) == []
    for name in ("cancel_run", "confirm_run", "reject_run"):
        assert client.post(url(f"ingestion_ingestionrun_{name}", run.id)).status_code == 404
    for name in ("run_now", "purge", "show_files"):
        assert client.get(url(f"kb_source_{name}", source.id)).status_code == 404
        assert client.post(url(f"kb_source_{name}", source.id)).status_code == 404
    assert client.get(url("ingestion_workerheartbeat_changelist")).status_code == 403


def test_a_private_knowledge_base_is_hidden_from_colleagues(organization, knowledge_base, source, run):
    type(knowledge_base).objects.filter(id=knowledge_base.id).update(visibility="private")
    client = client_of(make_user(organization, "dave", "editor"))
    for model in ("ingestion_ingestionrun", "ingestion_runitem", "kb_source"):
        assert list(client.get(url(f"{model}_changelist")).context["cl"].result_list) == []


def test_texts_of_private_knowledge_bases_are_not_shown_to_every_editor(run, alice, carol):
    """The cache is shared by all of an organization's knowledge bases, so only who may see all of them sees it."""
    for model in ("embeddedtext", "providercall"):
        page = url(f"ingestion_{model}_changelist")
        assert client_of(carol).get(page).context["cl"].result_count == 1
        answer = client_of(alice).get(page)
        assert answer.status_code == 403 or answer.context["cl"].result_count == 0
