"""Knowledge bases in the admin: edited as text, published by the services, compared and rolled back."""

import json

import pytest
from django.urls import reverse

from kb import versioning
from kb.bundles.texts import read_document, write_document
from kb.models import Grant, KnowledgeBase
from tests.kb.sessions import staff

pytestmark = pytest.mark.django_db


def change_form(client, knowledge_base, **values):
    """What the browser would send back, with some fields changed."""
    form = client.get(reverse("admin:kb_knowledgebase_change", args=[knowledge_base.pk])).context["adminform"].form
    grants = {"grants-TOTAL_FORMS": "0", "grants-INITIAL_FORMS": "0", "grants-MIN_NUM_FORMS": "0", "grants-MAX_NUM_FORMS": "1000"}
    return {**{name: form.initial[name] for name in ("document", "expected")}, "comment": "", **grants, **values}


def post_change(client, knowledge_base, data):
    return client.post(reverse("admin:kb_knowledgebase_change", args=[knowledge_base.pk]), data)


def edited(knowledge_base, **values) -> str:
    return write_document({**versioning.read(knowledge_base).document, **values})


def test_saving_publishes_a_version(operator, knowledge_base):
    data = change_form(operator, knowledge_base, document=edited(knowledge_base, description="from the admin"), comment="why")
    assert post_change(operator, knowledge_base, data).status_code == 302
    version = versioning.read(knowledge_base, 2)
    assert (version.document["description"], version.comment, version.author_name) == ("from the admin", "why", "admin")


def test_saving_nothing_publishes_nothing(operator, knowledge_base):
    assert post_change(operator, knowledge_base, change_form(operator, knowledge_base)).status_code == 302
    knowledge_base.refresh_from_db()
    assert knowledge_base.current.number == 1


def test_a_stale_edit_says_so_and_keeps_what_was_typed(operator, knowledge_base, actor):
    data = change_form(operator, knowledge_base, document=edited(knowledge_base, description="mine"))
    versioning.publish(knowledge_base, document=read_document(edited(knowledge_base, description="theirs")), expected=1, actor=actor)
    page = post_change(operator, knowledge_base, data)
    assert page.status_code == 200
    assert "You edited version 1, but version 2 is current" in page.content.decode()
    assert "description: mine" in page.content.decode()
    assert versioning.read(knowledge_base).document["description"] == "theirs"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [", "not valid YAML at line"),
        ("name: a\nname: b", "the key &#x27;name&#x27; stands twice"),
        ("- a", "not an object"),
        ("name: a\ncolour: red", "colour: is not a known key"),
        ("name: a\nchunking: {overlap: 0.9}", "chunking.overlap: "),
        ("name: a\nsources: [{name: f, type: upload, cron: 0 0 30 2 *}]", "sources[f].cron: "),
        ("a: &x [1]\nb: *x", "aliases"),
        ('{"name": "a", "name": "b"}', "stands twice"),
        ("name: a\nembedding_model: nobody\nsources: [{name: files, type: upload}]", "no registered model"),
    ],
)
def test_a_document_that_does_not_hold_is_explained_by_path(operator, knowledge_base, text, message):
    page = post_change(operator, knowledge_base, change_form(operator, knowledge_base, document=text))
    assert page.status_code == 200
    assert message in page.content.decode()
    assert knowledge_base.versions.count() == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [("name: a\ncolour: red", "colour: is not a known key"), ("name: [", "The document is not valid YAML at line")],
)
def test_a_refusal_is_told_at_the_top_too(operator, knowledge_base, text, message):
    page = post_change(operator, knowledge_base, change_form(operator, knowledge_base, document=text))
    told = [str(line) for line in page.context["messages"]]
    assert [line for line in told if line.startswith(message)], told
    assert page.content.decode().count(message) >= 2
    assert page.content.decode().index(message) < page.content.decode().index("<textarea")


def test_its_page_links_to_what_it_holds(operator, filled, knowledge_base):
    page = operator.get(reverse("admin:kb_knowledgebase_change", args=[knowledge_base.pk])).content.decode()
    for name in ("kb_source", "kb_document", "ingestion_ingestionrun", "kb_knowledgebaseversion"):
        link = f"{reverse(f'admin:{name}_changelist')}?knowledge_base__id__exact={knowledge_base.pk}"
        assert link in page
        assert operator.get(link).status_code == 200


def test_json_is_taken_too(operator, knowledge_base):
    text = json.dumps({**versioning.read(knowledge_base).document, "language": "de"})
    assert post_change(operator, knowledge_base, change_form(operator, knowledge_base, document=text)).status_code == 302
    assert versioning.read(knowledge_base, 2).document["language"] == "de"


def test_a_new_one_is_made(operator, organization, hashing_model):
    url = reverse("admin:kb_knowledgebase_add")
    taken = operator.post(url, {"organization": organization.pk, "document": "name: Notes", "comment": ""})
    assert taken.status_code == 302, taken.context["errors"]
    assert KnowledgeBase.objects.get().name == "Notes"
    again = operator.post(url, {"organization": organization.pk, "document": "name: notes", "comment": ""})
    assert "already a knowledge base named" in again.content.decode()


def test_grants_are_given_and_taken_on_its_page(operator, knowledge_base, bob, mallory):
    grant = {"grants-TOTAL_FORMS": "1", "grants-0-user": bob.pk, "grants-0-level": "viewer", "grants-0-knowledge_base": knowledge_base.pk}
    Grant.objects.all().delete()
    assert post_change(operator, knowledge_base, change_form(operator, knowledge_base, **grant)).status_code == 302
    row = Grant.objects.get()
    assert (row.user, row.organization_id) == (bob, knowledge_base.organization_id)
    foreign = {**grant, "grants-0-user": mallory.pk}
    assert post_change(operator, knowledge_base, change_form(operator, knowledge_base, **foreign)).status_code == 200
    gone = {**grant, "grants-INITIAL_FORMS": "1", "grants-0-id": row.pk, "grants-0-DELETE": "on"}
    assert post_change(operator, knowledge_base, change_form(operator, knowledge_base, **gone)).status_code == 302
    assert not Grant.objects.exists()


def test_deleting_says_what_goes_and_takes_it_away(operator, filled, knowledge_base):
    url = reverse("admin:kb_knowledgebase_delete", args=[knowledge_base.pk])
    page = operator.get(url).content.decode()
    assert all(line in page for line in ("2 sources", "1 document", "1 chunk", "1 file"))
    assert operator.post(url, {"post": "yes"}).status_code == 302
    knowledge_base.refresh_from_db()
    assert knowledge_base.state == "deleting"


def test_the_difference_is_shown_and_rolled_back(operator, knowledge_base, actor):
    document = {**versioning.read(knowledge_base).document, "description": "<script>second</script>"}
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    page = operator.get(reverse("admin:kb_knowledgebase_diff", args=[knowledge_base.pk])).content.decode()
    assert "&lt;script&gt;second" in page
    assert "kb-new" in page
    url = reverse("admin:kb_knowledgebase_rollback", args=[knowledge_base.pk, 1])
    assert "&lt;script&gt;second" in operator.get(url).content.decode()
    assert operator.post(url, {"expected": "1", "comment": ""}).status_code == 302  # stale
    assert knowledge_base.versions.count() == 2
    operator.post(url, {"expected": "2", "comment": "oops"})
    knowledge_base.refresh_from_db()
    assert (versioning.read(knowledge_base).number, versioning.read(knowledge_base).comment) == (3, "oops")


def test_a_viewer_reads_and_cannot_roll_back(knowledge_base, bob, actor):
    versioning.publish(knowledge_base, document={**versioning.read(knowledge_base).document, "language": "de"}, expected=1, actor=actor)
    viewer = staff(bob)
    page = viewer.get(reverse("admin:kb_knowledgebase_change", args=[knowledge_base.pk]))
    assert page.status_code == 200
    assert "name: Handbooks" in page.content.decode()
    assert viewer.get(reverse("admin:kb_knowledgebase_diff", args=[knowledge_base.pk])).status_code == 200
    assert viewer.post(reverse("admin:kb_knowledgebase_rollback", args=[knowledge_base.pk, 1]), {"expected": "2"}).status_code == 302
    assert post_change(viewer, knowledge_base, {"document": "name: x", "expected": "2"}).status_code == 403
    knowledge_base.refresh_from_db()
    assert knowledge_base.current.number == 2


def test_a_duplicate_is_made_on_request(operator, knowledge_base):
    url = reverse("admin:kb_knowledgebase_duplicate", args=[knowledge_base.pk])
    assert operator.get(url).status_code == 200
    assert operator.post(url, {"name": "handbooks"}).status_code == 200
    assert operator.post(url, {"name": "Copy"}).status_code == 302
    assert set(KnowledgeBase.objects.values_list("name", flat=True)) == {"Handbooks", "Copy"}


# --- tenants ------------------------------------------------------------------------------------------------------------


def test_a_version_that_drops_a_source_is_published_by_who_was_told(operator, knowledge_base, filled):
    data = change_form(operator, knowledge_base, document=edited(knowledge_base, sources=[]))
    asked = post_change(operator, knowledge_base, data)
    assert asked.status_code == 200
    told = "This version removes “files” with 1 documents, 0 chunks and 1 files."
    assert told in asked.content.decode()
    assert 'type="checkbox" name="removes"' in asked.content.decode()
    assert knowledge_base.versions.count() == 1
    assert post_change(operator, knowledge_base, {**data, "removes": "on"}).status_code == 302
    assert versioning.read(knowledge_base, 2).document["sources"] == []


def test_nothing_is_asked_where_nothing_goes(operator, knowledge_base, filled):
    page = operator.get(reverse("admin:kb_knowledgebase_change", args=[knowledge_base.pk])).content.decode()
    assert 'type="hidden" name="removes"' in page
    sources = [{**versioning.read(knowledge_base).document["sources"][0], "name": "renamed"}]
    data = change_form(operator, knowledge_base, document=edited(knowledge_base, sources=sources))
    assert post_change(operator, knowledge_base, data).status_code == 302


def test_a_rollback_says_what_it_removes(operator, knowledge_base, actor):
    more = [*versioning.read(knowledge_base).document["sources"], {"name": "more", "type": "upload"}]
    versioning.publish(knowledge_base, document={**versioning.read(knowledge_base).document, "sources": more}, expected=1, actor=actor)
    page = operator.get(reverse("admin:kb_knowledgebase_rollback", args=[knowledge_base.pk, 1])).content.decode()
    assert "This version removes “more” with 0 documents" in page
