"""`apply`: the file decides, the same file again changes nothing, and what deletes documents is asked for."""

from threading import Barrier, Thread

import pytest
from django.db import connection

from config.errors import Conflict, Forbidden, InvalidInput, LecternError, NotFound
from config.tenancy import carried
from kb import access, services, transfers, versioning
from kb.applying import apply_entries
from kb.bundles import Entry, write_yaml
from kb.models import Document, KnowledgeBase, Source

pytestmark = pytest.mark.django_db
BOTH = "name: Docs\nsources:\n- {name: files, type: upload}\n- {name: site, web: {start_url: 'https://docs.example.com/'}}\n"


def entries_of(text: str) -> list[Entry]:
    return transfers.read_entries(text.encode(), name="kb.yaml")[0]


def apply(actor, text: str, **values):
    return [(outcome.action, outcome.version) for outcome in apply_entries(actor, entries_of(text), **values)]


def current(name: str = "Docs") -> dict:
    return versioning.read(KnowledgeBase.objects.get(name=name, state="active")).document


def ids(name: str = "Docs") -> dict[str, str]:
    return {source["name"]: source["id"] for source in current(name)["sources"]}


def test_it_makes_changes_and_then_does_nothing(actor, hashing_model):
    assert apply(actor, BOTH) == [("created", 1)]
    assert apply(actor, BOTH) == [("unchanged", 1)]
    before = ids()
    changed = BOTH.replace("name: Docs", "name: Docs\ndescription: new")
    (dry,) = apply_entries(actor, entries_of(changed), dry_run=True)
    assert (dry.action, dry.version) == ("published", 2)
    assert [(change.path, change.old, change.new) for change in dry.changes] == [("description", "", "new")]
    assert KnowledgeBase.objects.get().current.number == 1
    assert apply(actor, changed) == [("published", 2)]
    assert apply(actor, changed) == [("unchanged", 2)]
    assert ids() == before
    assert versioning.read(KnowledgeBase.objects.get()).comment == "Applied from kb.yaml"


def test_what_was_exported_is_unchanged_and_its_id_survives_renaming(actor, hashing_model):
    apply(actor, BOTH)
    text = write_yaml([transfers.export(KnowledgeBase.objects.get())])
    assert apply(actor, text) == [("unchanged", 1)]
    before = ids()
    renamed = text.replace("name: Docs", "name: Manuals").replace("name: site", "name: web site")
    assert apply(actor, renamed) == [("published", 2)]
    assert ids("Manuals") == {"files": before["files"], "web site": before["site"]}
    assert KnowledgeBase.objects.count() == 1


def test_a_file_from_elsewhere_is_matched_by_names(actor, other_organization, mallory, hashing_model):
    stranger = access.actor_for_user(mallory)
    apply(stranger, BOTH)
    text = write_yaml([transfers.export(KnowledgeBase.objects.get())])
    assert apply(actor, text) == [("created", 1)]
    assert apply(actor, text.replace("description: ''", "description: new")) == [("published", 2)]
    assert apply(stranger, text) == [("unchanged", 1)]
    ours, theirs = (versioning.read(KnowledgeBase.objects.get(organization=who.organization)).document for who in (actor, stranger))
    assert not {source["id"] for source in ours["sources"]} & {source["id"] for source in theirs["sources"]}


def test_removing_a_source_says_how_many_documents_go_and_has_to_be_allowed(actor, organization, hashing_model):
    apply(actor, BOTH)
    source = Source.objects.get(name="site")
    for number in range(3):
        of = {"organization": organization, "knowledge_base": source.knowledge_base, "source": source}
        Document.objects.create(key=f"/{number}", key_hash=bytes([number]) * 16, **of)
    less = "name: Docs\nsources:\n- {name: files, type: upload}\n"
    (dry,) = apply_entries(actor, entries_of(less), dry_run=True)
    assert [(gone.name, gone.documents) for gone in dry.removed_sources] == [("site", 3)]
    with pytest.raises(Conflict, match="'site' with 3 documents"):
        apply(actor, f"name: Another\n---\n{less}")
    assert not KnowledgeBase.objects.filter(name="Another").exists()  # nothing is written before everything is checked
    assert apply(actor, less, allow_removals=True) == [("published", 2)]
    source.refresh_from_db()
    assert source.state == "removing"


def test_another_type_under_the_same_name_is_a_removal(actor, hashing_model):
    apply(actor, BOTH)
    retyped = BOTH.replace("{name: site, web: {start_url: 'https://docs.example.com/'}}", "{name: site, type: upload}")
    (dry,) = apply_entries(actor, entries_of(retyped), dry_run=True)
    assert sorted(change.kind for change in dry.changes) == ["added", "removed"]
    assert "id" not in next(change.new for change in dry.changes if change.kind == "added")
    with pytest.raises(Conflict, match="'site'"):
        apply(actor, retyped)


def test_another_type_under_the_same_id_is_a_removal_too(actor, hashing_model):
    apply(actor, BOTH)
    site = Source.objects.get(name="site")
    retyped = f"name: Docs\nsources:\n- {{name: files, type: upload}}\n- {{id: {site.id.hex}, name: site, type: upload}}\n"
    with pytest.raises(Conflict, match="'site' with 0 documents"):
        apply(actor, retyped)
    assert apply(actor, retyped, allow_removals=True) == [("published", 2)]
    site.refresh_from_db()
    assert (site.kind, site.state) == ("upload", "active")


def test_the_model_in_use_stays_where_none_is_named(actor, organization, carol, hashing_model):
    from kb.embedding_models import register_model

    apply(actor, BOTH)
    own = {"name": "own", "provider": "hashing", "model": "own", "dimension": 256, "max_input_tokens": 256, "is_default": True}
    register_model(access.actor_for_user(carol), document=own)
    assert apply(actor, BOTH) == [("unchanged", 1)]
    assert apply(actor, BOTH + "embedding_model: own\n") == [("published", 2)]
    assert current()["embedding_model"] == "own"
    assert apply(actor, BOTH + "embedding_model: theirs\n", models={"theirs": "hashing"}) == [("published", 3)]


def test_what_is_converted_on_the_way_settles(actor, hashing_model):
    """A document of another product, a price that is left out, a name in another composition of characters."""
    foreign = (
        '{"name": "Cafe\u0301", "chunkSize": 512, "minScore": 0.6, "sources": [{"name": "s", "web": {"startUrl": "https://a.example/"}}]}'
    )
    assert apply(actor, foreign) == [("created", 1)]
    assert apply(actor, foreign) == [("unchanged", 1)]
    priced = "name: CAFÉ\nsources: [{name: f, type: upload, settings: {cost_per_thousand_segments: 1}}]"
    assert apply(actor, priced, allow_removals=True) == [("published", 2)]
    assert apply(actor, priced) == [("unchanged", 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{BOTH}---\nname: docs\n", "mean the same knowledge base"),
        ("id: 1\nname: a", "id is not the id"),
        (BOTH.replace("files, type: upload", "files, type: upload, cron: '* * * * * *'"), r"kb.yaml: .*sources\[files\]"),
    ],
)
def test_what_cannot_be_meant_is_refused(actor, hashing_model, text, message):
    with pytest.raises(InvalidInput, match=message):
        apply(actor, text)
    assert not KnowledgeBase.objects.exists()


def test_two_entries_with_one_id_are_refused(actor, knowledge_base):
    text = f"id: {knowledge_base.id}\nname: a\n---\nid: {knowledge_base.id}\nname: b\n"
    with pytest.raises(InvalidInput, match="the same id"):
        apply(actor, text)


def test_rights_hold(actor, bob, hashing_model):
    apply(actor, BOTH.replace("name: Docs", "name: Docs\nvisibility: organization"))
    with pytest.raises(Forbidden):
        apply(access.actor_for_user(bob), BOTH)


def test_a_name_that_somebody_else_s_private_one_has_is_a_conflict(actor, carol, organization, hashing_model):
    services.create_knowledge_base(access.actor_for_user(carol), document={"name": "Docs"})
    with pytest.raises(Conflict, match="already a knowledge base named"):
        apply(actor, BOTH)


def test_a_version_published_in_between_is_looked_at_again(actor, hashing_model, monkeypatch):
    apply(actor, BOTH)
    published = versioning.publish
    rival = [{**current(), "description": "theirs", "language": "de"}]

    def publish(knowledge_base, **values):
        if rival:
            published(knowledge_base, document=rival.pop(), expected=1, actor=actor)
        return published(knowledge_base, **values)

    monkeypatch.setattr(versioning, "publish", publish)
    assert apply(actor, BOTH.replace("name: Docs", "name: Docs\ndescription: ours")) == [("published", 3)]
    assert (current()["description"], current()["language"]) == ("ours", "auto")


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
@pytest.mark.parametrize("there", [False, True])
def test_several_at_once_leave_one_version(organization, hashing_model, there):
    system = access.system_actor(organization)
    if there:
        apply(system, BOTH)
    text = BOTH.replace("name: Docs", "name: Docs\ndescription: new")
    barrier, told = Barrier(4), []

    def work() -> None:
        barrier.wait()
        try:
            told.append(apply(system, text)[0][0])
        except (LecternError, NotFound) as error:
            told.append(error)
        finally:
            connection.close()

    threads = [Thread(target=carried(work)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, told)) == sorted(["published" if there else "created", "unchanged", "unchanged", "unchanged"])
    assert KnowledgeBase.objects.get().current.number == 1 + there
