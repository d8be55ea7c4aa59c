"""Export and import in the admin."""

import io
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from kb import services
from kb.bundles.texts import read_document
from kb.models import KnowledgeBase
from tests.kb.sessions import staff

pytestmark = pytest.mark.django_db
TEXT = "name: Notes\nembedding_model: big\nsources: [{name: files, type: upload}]\n"


def sent(client, organization, text: str, **values):
    file = SimpleUploadedFile("notes.yaml", text.encode())
    url = reverse("admin:kb_knowledgebase_import_bundle")
    return client.post(url, {"organization": organization.pk, "bundle": file, "name": "", "models": "", **values})


def confirmed(client, page, **values):
    """What the second page sends back."""
    form = page.context["form"]
    kept = {name: page.context[name] for name in ("content", "file_name")} | {name: form.data.get(name, "") for name in ("name", "models")}
    return client.post(
        reverse("admin:kb_knowledgebase_import_bundle"), {"organization": form.data["organization"], "confirmed": "yes", **kept, **values}
    )


def test_its_page_exports_it(operator, knowledge_base):
    page = operator.get(reverse("admin:kb_knowledgebase_change", args=[knowledge_base.pk])).content.decode()
    for form in ("yaml", "zip"):
        url = reverse(f"admin:kb_knowledgebase_export_{form}", args=[knowledge_base.pk])
        assert url in page
        assert operator.get(url)["Content-Disposition"] == f'attachment; filename="handbooks.{form}"'
    text = operator.get(reverse("admin:kb_knowledgebase_export_yaml", args=[knowledge_base.pk])).content.decode()
    assert read_document(text)["name"] == "Handbooks"


def test_the_list_exports_several_and_leads_to_the_import(operator, knowledge_base, actor):
    other = services.create_knowledge_base(actor, document={"name": "Policies"})
    url = reverse("admin:kb_knowledgebase_changelist")
    assert reverse("admin:kb_knowledgebase_import_bundle") in operator.get(url).content.decode()
    answer = operator.post(url, {"action": "export_selected", "_selected_action": [knowledge_base.pk, other.pk]})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert len(archive.namelist()) == 3


def test_an_import_shows_first_what_would_happen(operator, organization, hashing_model):
    assert operator.get(reverse("admin:kb_knowledgebase_import_bundle")).status_code == 200
    page = sent(operator, organization, TEXT, models="big = hashing")
    assert "“notes.yaml” would make" in page.content.decode()
    assert "embedding_model" in page.content.decode()
    assert not KnowledgeBase.objects.exists()
    assert confirmed(operator, page).status_code == 302
    assert KnowledgeBase.objects.get().name == "Notes"


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("name: [", {}, "notes.yaml is not valid YAML"),
        (TEXT, {}, "no registered model"),
        (TEXT, {"models": "big"}, "no mapping"),
        ("name: Handbooks", {}, "taken already"),
        ("", {}, "Choose an organization and a file"),
    ],
)
def test_a_refusal_is_told(operator, organization, knowledge_base, text, values, message):
    page = sent(operator, organization, text, **values)
    assert page.status_code == 200
    assert message in page.content.decode()
    assert KnowledgeBase.objects.count() == 1


def test_rights_hold(organization, other_organization, knowledge_base, alice, bob, mallory):
    viewer, stranger = staff(bob), staff(mallory)
    assert viewer.get(reverse("admin:kb_knowledgebase_export_yaml", args=[knowledge_base.pk])).status_code == 200
    assert viewer.get(reverse("admin:kb_knowledgebase_import_bundle")).status_code == 403
    assert stranger.get(reverse("admin:kb_knowledgebase_export_zip", args=[knowledge_base.pk])).status_code == 302
    assert "Choose an organization" in sent(stranger, organization, "name: Notes").content.decode()
    page = sent(staff(alice), organization, "name: Handbooks", rename="on")
    assert confirmed(staff(alice), page, rename="on").status_code == 302
    assert set(KnowledgeBase.objects.values_list("name", flat=True)) == {"Handbooks", "Handbooks (2)"}
