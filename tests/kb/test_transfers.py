"""Export and import: the same configuration under new ids, all or none, with what was converted told."""

import zipfile
from datetime import UTC, datetime
from io import BytesIO
from uuid import uuid4

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings

from config.errors import Conflict, Forbidden, InvalidInput
from kb import access, schemas, services, transfers, versioning
from kb.bundles import Entry, Export, write_yaml, write_zip
from kb.models import KnowledgeBase, Source
from tests.kb.documents import documents

pytestmark = pytest.mark.django_db
SITE = {"name": "site", "cron": "30 3 * * *", "web": {"start_url": "https://docs.example.com/"}}


def entries_of(*texts: str) -> list[Entry]:
    return [entry for text in texts for entry in transfers.read_entries(text.encode(), name="test.yaml")[0]]


def without_ids(document):
    return {**document, "sources": [{**source, "id": None} for source in document["sources"]]}


@given(documents())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("form", ["yaml", "zip"])
def test_what_is_exported_comes_in_equal_but_for_its_ids(actor, hashing_model, form, document):
    with transaction.atomic():
        made = services.create_knowledge_base(actor, document=document)
        _, content = transfers.bundle_file([transfers.export(made)], form=form)
        services.delete_knowledge_base(made)
        (outcome,) = transfers.import_entries(actor, transfers.read_entries(content, name="test")[0])
        before, after = (
            versioning.read(made).document,
            versioning.read(access.get_knowledge_base(actor, outcome.knowledge_base_id)).document,
        )
        assert without_ids(after) == without_ids(before)
        assert not {source["id"] for source in after["sources"]} & {source["id"] for source in before["sources"]}
        assert (outcome.notes, outcome.knowledge_base_id == made.id) == ([], False)
        transaction.set_rollback(True)


def test_several_go_out_and_in_as_one_file(actor, knowledge_base, carol):
    other = services.create_knowledge_base(actor, document={"name": "Policies", "sources": [SITE]})
    exports = [transfers.export(found) for found in (knowledge_base, other)]
    assert [entry.id for entry in entries_of(write_yaml(exports))] == [knowledge_base.id, other.id]
    outcomes = transfers.import_entries(actor, entries_of(write_yaml(exports)), rename=True)
    assert [outcome.name for outcome in outcomes] == ["Handbooks (2)", "Policies (2)"]
    assert Source.objects.filter(knowledge_base__name__endswith="(2)").count() == 2
    assert transfers.import_entries(actor, entries_of(write_yaml(exports)), rename=True)[0].name == "Handbooks (3)"


def test_two_exports_of_a_version_are_the_same_text_and_an_old_one_can_be_had(actor, knowledge_base):
    document = {**versioning.read(knowledge_base).document, "description": "second"}
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    first, second = (transfers.export(knowledge_base, number=number) for number in (1, 2))
    assert (first.document["description"], second.document["description"]) == ("", "second")
    assert write_yaml([second]) == write_yaml([transfers.export(knowledge_base)])
    when = datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC)
    zipped = [write_zip([second], exported_at=when, product_version="1") for _ in range(2)]
    assert zipped[0] == zipped[1]


def test_a_taken_name_is_a_conflict_and_nothing_is_made(actor, knowledge_base):
    with pytest.raises(Conflict, match="'handbooks'"):
        transfers.import_entries(actor, entries_of("name: Fresh\n---\nname: handbooks"))
    assert KnowledgeBase.objects.count() == 1
    (outcome,) = transfers.import_entries(actor, entries_of("name: handbooks"), name="Others")
    assert outcome.name == "Others"
    with pytest.raises(InvalidInput, match="name is for one"):
        transfers.import_entries(actor, entries_of("name: a\n---\nname: b"), name="Others")
    with pytest.raises(Conflict, match="'a'"):
        transfers.import_entries(actor, entries_of("name: A\n---\nname: a"))


def test_a_dry_run_says_the_same_and_leaves_nothing(actor, hashing_model):
    entries = entries_of("name: Fresh\nsources: [{name: files, type: upload}]")
    (dry,) = transfers.import_entries(actor, entries, dry_run=True)
    assert (dry.action, dry.name, dry.knowledge_base_id, dry.version) == ("created", "Fresh", None, 1)
    assert (KnowledgeBase.objects.count(), Source.objects.count()) == (0, 0)
    (made,) = transfers.import_entries(actor, entries)
    assert KnowledgeBase.objects.get().id == made.knowledge_base_id


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nsources: [{name: f, type: upload, cron: 0 0 30 2 *}]", r"test.yaml: .*sources\[f\].cron"),
        ("name: a\nsources: [{name: f, type: upload, cron: '* * * * * *'}]", r"sources\[f\].cron"),
        ("name: a\ncolour: red", "colour: is not a known key"),
        ("name: 2026", "name: must be text"),
        ("name: a\nschema: 99", "Upgrade Lectern"),
        ("name: a\nembedding_model: nobody", "no registered model 'nobody'. Registered: hashing. .*model nobody=NAME"),
        ("name: a\n---\nname: b\nlanguage: klingon", "test.yaml, document 2: .*language"),
        ("name: a\nstore: {type: qdrant}", "needs 'host'"),
    ],
)
def test_what_does_not_hold_is_refused_with_its_place(actor, hashing_model, text, message):
    with pytest.raises(InvalidInput, match=message):
        transfers.import_entries(actor, entries_of(text))
    assert not KnowledgeBase.objects.exists()


def test_an_embedding_model_is_mapped_by_name_or_known_by_what_it_is(actor, hashing_model):
    entries = entries_of("name: a\nembedding_model: big")
    (outcome,) = transfers.import_entries(actor, entries, models={"big": "hashing"})
    assert [(note.path, note.old, note.new) for note in outcome.notes] == [("embedding_model", "big", "hashing")]
    assert versioning.read(KnowledgeBase.objects.get()).document["embedding_model"] == "hashing"
    transfers.import_entries(actor, entries_of("name: b\nembedding_model: hashing/hashing"))
    with pytest.raises(InvalidInput, match=r"names the embedding model 'small'\. The bundle names 'big'"):
        transfers.import_entries(actor, entries, models={"small": "hashing"})


def test_a_price_a_segment_becomes_one_a_million_tokens(actor, hashing_model):
    text = "name: a\nchunking: {target_tokens: 100}\nsources: [{name: f, type: upload, settings: {cost_per_thousand_segments: 0.02}}]"
    (outcome,) = transfers.import_entries(actor, entries_of(text))
    (note,) = outcome.notes
    # 1,000 segments of 100 tokens are 100,000 tokens for 0.02: a million cost 0.2.
    assert (note.path, note.old) == ("sources[f].settings.cost_per_thousand_segments", 0.02)
    assert "0.2 per million tokens" in note.message
    assert versioning.read(KnowledgeBase.objects.get()).document["sources"][0]["settings"]["cost_per_thousand_segments"] is None


def test_secrets_are_named_and_never_written(actor, organization, hashing_model, monkeypatch):
    parameters = {"a": "${secret:QDRANT_KEY}", "b": "${secret:OTHER}", "c": "${secret:FROM_ENV}"}
    document = schemas.load({"name": "a"}, strict=True)
    document = document.model_copy(update={"store": document.store.model_copy(update={"parameters": parameters})})
    services.set_secret(organization=organization, name="OTHER", value="the very secret value")
    monkeypatch.setenv("LECTERN_SECRET__FROM_ENV", "another secret value")
    outcome = transfers.with_secrets(actor, transfers.Outcome("created", "a", "a.yaml"), document)
    assert (outcome.secrets, outcome.missing_secrets) == (["FROM_ENV", "OTHER", "QDRANT_KEY"], ["QDRANT_KEY"])
    packed = write_zip([Export(uuid4(), 1, schemas.dump(document))], exported_at=datetime.now(UTC), product_version="1")
    with zipfile.ZipFile(BytesIO(packed)) as archive:
        texts = [archive.read(name).decode() for name in archive.namelist()]
    assert '"QDRANT_KEY"' in texts[0]
    assert not any("secret value" in text for text in texts)


def test_a_secret_that_an_old_version_holds_in_clear_is_not_exported(knowledge_base, actor, hashing_model):
    from kb.models import KnowledgeBaseVersion

    document = {**versioning.read(knowledge_base).document, "store": {"type": "qdrant", "parameters": {"api_key": "in clear"}}}
    KnowledgeBaseVersion.objects.create(
        organization=knowledge_base.organization, knowledge_base=knowledge_base, number=2, document=document, author_name="old"
    )
    exported = transfers.export(knowledge_base, number=2)
    assert "in clear" not in write_yaml([exported])
    with pytest.raises(InvalidInput):
        transfers.import_entries(actor, entries_of(write_yaml([exported])), name="b")


def test_a_viewer_imports_nothing(bob, hashing_model):
    with pytest.raises(Forbidden):
        transfers.import_entries(access.actor_for_user(bob), entries_of("name: a"))
