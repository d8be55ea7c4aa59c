"""What was refused for what it is is looked at again when its bytes, the settings or the engines are others, and not before."""

from email.message import EmailMessage
from uuid import uuid4

import pytest

from ingestion import recognition
from ingestion.models import IngestionRun, RunItem
from ingestion.recognize.engines import PrintEngine
from ingestion.services import files
from ingestion.services.runs import purge_source, start_run
from ingestion.stages import slices
from kb import blobs, versioning
from kb.models import Document, KnowledgeBase, Source
from tests.samples.pictures import print_page, saved

pytestmark = pytest.mark.django_db
STAGES = ("crawl", "extract", "extract", "embed", "publish", "finish")


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    """No engine at first; called with one, that is installed."""

    def install(found: PrintEngine | None) -> None:
        monkeypatch.setattr(recognition, "print_engine", lambda: found)

    install(None)
    return install


def mail(*, picture: bytes) -> bytes:
    made = EmailMessage()
    made["Subject"], made["From"], made["To"] = "Rules", "a@a.example", "b@b.example"
    made.set_content("Please read the rules that are attached to this message.")
    made.add_attachment(picture, maintype="image", subtype="png", filename="rules.png")
    return made.as_bytes()


def put(source: Source, content: bytes) -> None:
    files.keep_blob(source, blobs.store_bytes(source.organization_id, content), name="mail.eml", declared_type=None, user=None)


def run(source: Source, *stages: str) -> tuple[str, str, str]:
    """(status of a run, verdict and reason of the attachment)."""
    started = start_run(source)
    for stage in stages or STAGES:
        slices.work(stage, started.id, f"{started.id}:{uuid4().hex}")
    item = RunItem.objects.get(run=started, key="mail.eml/rules.png")
    return IngestionRun.objects.get(id=started.id).status, item.verdict, item.reason


@pytest.fixture
def refused(source):
    put(source, mail(picture=saved(print_page())))
    assert run(source) == ("partial", "failed", "no_engine")
    return Document.objects.get(source=source, key="mail.eml/rules.png")


def test_it_is_not_tried_again_for_nothing_and_goes_on_saying_why(source, refused):
    for _ in range(2):
        assert run(source) == ("succeeded", "skipped", "no_engine")
    item = RunItem.objects.filter(key="mail.eml/rules.png").latest("id")
    assert "no text recognition is installed here" in item.error
    refused.refresh_from_db()
    assert (refused.last_reason, refused.last_error) == ("no_engine", item.error)


def test_a_new_engine_is_tried(source, refused, engine):
    engine(PrintEngine("rapidocr"))
    started = start_run(source)
    for stage in ("crawl", "extract"):
        slices.work(stage, started.id, f"{started.id}:{uuid4().hex}")
    item = RunItem.objects.get(run=started, key="mail.eml/rules.png")
    assert (item.stage, item.verdict) == (RunItem.Stage.PARTED, "")


def test_other_settings_are_tried(source, refused, actor, knowledge_base):
    document = {**knowledge_base.current.document}
    document["sources"] = [{**entry, "settings": {**entry["settings"], "ocr": "off"}} for entry in document["sources"]]
    versioning.publish(knowledge_base, document=document, expected=knowledge_base.current.number, actor=actor)
    KnowledgeBase.objects.get(id=knowledge_base.id)
    assert run(source) == ("partial", "failed", "ocr_off")
    assert run(source) == ("succeeded", "skipped", "ocr_off")


def test_other_bytes_are_tried(source, refused):
    put(source, mail(picture=saved(print_page(letters=40))))
    started = start_run(source)
    for stage in STAGES:
        slices.work(stage, started.id, f"{started.id}:{uuid4().hex}")
    assert RunItem.objects.filter(run=started, key="mail.eml/rules.png", verdict="failed").count() == 1


def test_an_editor_may_have_it_tried_again(source, refused):
    purge_source(source)
    assert run(source) == ("partial", "failed", "no_engine")


def test_another_language_is_another_installation(source, refused, settings):
    settings.ENV = settings.ENV.model_copy(update={"ocr_languages": ("eng", "deu")})
    assert run(source) == ("partial", "failed", "no_engine")
