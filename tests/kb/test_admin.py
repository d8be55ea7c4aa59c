"""The admin: every page renders, foreign rows stay hidden, and changes go through the services."""

from datetime import timedelta

import pytest
from django.contrib import admin
from django.urls import reverse
from django.utils import timezone

import config.urls  # noqa: F401 - the pages are registered
from kb import services
from kb.models import (
    ApiKey,
    Blob,
    EmbeddingModel,
    IdempotencyKey,
    KnowledgeBase,
    Membership,
    Organization,
    Secret,
    User,
)
from tests.kb.sessions import staff

pytestmark = pytest.mark.django_db

KB_MODELS = [model for model in admin.site._registry if model._meta.app_label == "kb"]


def test_every_table_of_kb_has_an_admin():
    from django.apps import apps

    # What the stores keep for themselves is nothing to look at by the row.
    kept_by_stores = {"kb.models.derived", "kb.models.spellings", "kb.models.stores"}
    shown = {model for model in apps.get_app_config("kb").get_models() if model.__module__ not in kept_by_stores}
    assert shown <= set(admin.site._registry)


@pytest.mark.parametrize("model", KB_MODELS, ids=lambda model: model.__name__)
def test_every_page_renders_for_an_operator(operator, filled, model):
    name = f"admin:kb_{model._meta.model_name}"
    listed = operator.get(reverse(f"{name}_changelist"))
    assert listed.status_code == 200
    row = model._default_manager.first()
    assert row is not None
    assert operator.get(reverse(f"{name}_changelist"), {"q": "a"}).status_code == 200
    assert operator.get(reverse(f"{name}_change", args=[row.pk])).status_code == 200
    assert operator.get(reverse(f"{name}_add")).status_code in (200, 403)
    assert operator.get(reverse(f"{name}_delete", args=[row.pk])).status_code in (200, 403)


@pytest.mark.parametrize("model", KB_MODELS, ids=lambda model: model.__name__)
def test_staff_of_another_organization_see_nothing_of_this_one(filled, mallory, carol, model):
    name = f"admin:kb_{model._meta.model_name}"
    stranger, own = staff(mallory), staff(carol)
    rows = model._default_manager.all()
    if model is EmbeddingModel or model._meta.model_name == "embeddingspace":
        return  # the installation's model is everybody's
    if "organization" in {field.name for field in model._meta.fields}:
        rows = rows.filter(organization__name="Acme")
    elif model is Organization:
        rows = rows.filter(name="Acme")
    row = rows.first()
    page = stranger.get(reverse(f"{name}_changelist"))
    assert page.status_code in (200, 403)
    assert reverse(f"{name}_change", args=[row.pk]) not in page.content.decode()
    assert b"Acme" not in page.content
    assert stranger.get(reverse(f"{name}_change", args=[row.pk])).status_code in (302, 403)
    assert stranger.post(reverse(f"{name}_delete", args=[row.pk]), {"post": "yes"}).status_code in (302, 403)
    assert model._default_manager.filter(pk=row.pk).exists()
    if model not in (User, Blob, IdempotencyKey):  # these are the operator's
        assert own.get(reverse(f"{name}_changelist")).status_code == 200
        assert own.get(reverse(f"{name}_change", args=[row.pk])).status_code == 200


def test_staff_without_an_organization_see_nothing(filled):
    loner = staff(User.objects.create(username="loner"))
    assert {loner.get(reverse(f"admin:kb_{model._meta.model_name}_changelist")).status_code for model in KB_MODELS} == {403}


def test_a_private_knowledge_base_is_hidden_from_a_member_without_grant(actor, hashing_model, bob, alice):
    private = services.create_knowledge_base(actor, document={"name": "Salaries"})
    url = reverse("admin:kb_knowledgebase_change", args=[private.pk])
    assert (staff(bob).get(url).status_code, staff(alice).get(url).status_code) == (302, 200)


# --- knowledge bases ----------------------------------------------------------------------------------------------------


def test_the_value_of_a_key_is_shown_once(operator, organization):
    data = {"organization": organization.pk, "name": "bot", "role": "viewer", "knowledge_base_ids": ""}
    page = operator.post(reverse("admin:kb_apikey_add"), data)
    assert page.status_code == 200
    key = ApiKey.objects.get()
    value = page.context["value"]
    assert services.key_digest(value) == bytes(key.digest)
    assert value in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    assert value not in operator.get(reverse("admin:kb_apikey_change", args=[key.pk])).content.decode()
    operator.post(reverse("admin:kb_apikey_delete", args=[key.pk]), {"post": "yes"})
    key.refresh_from_db()
    assert key.revoked_at is not None


def test_a_key_that_has_expired_already_is_refused_on_the_form(operator, organization):
    past = timezone.now() - timedelta(days=1)
    data = {"organization": organization.pk, "name": "bot", "role": "viewer", "knowledge_base_ids": ""}
    data |= {"expires_at_0": past.date(), "expires_at_1": "10:00"}
    page = operator.post(reverse("admin:kb_apikey_add"), data)
    assert "lies in the past" in page.content.decode()
    assert not ApiKey.objects.exists()


def test_a_secret_goes_in_and_never_comes_out(operator, organization):
    operator.post(reverse("admin:kb_secret_add"), {"organization": organization.pk, "name": "TOKEN", "value": "one secret value"})
    secret = Secret.objects.get()
    url = reverse("admin:kb_secret_change", args=[secret.pk])
    assert b"one secret value" not in operator.get(url).content
    operator.post(url, {"value": "another secret value"})
    assert services.secret_value(organization.id, "TOKEN") == "another secret value"
    refused = operator.post(reverse("admin:kb_secret_add"), {"organization": organization.pk, "name": "1", "value": "v"})
    assert b"letters, digits" in refused.content


def test_an_administrator_changes_roles_of_the_own_organization_only(carol, bob, mallory):
    own = staff(carol)
    member = Membership.objects.get(user=bob)
    own.post(reverse("admin:kb_membership_change", args=[member.pk]), {"role": "editor"})
    member.refresh_from_db()
    assert member.role == "editor"
    theirs = Membership.objects.get(user=mallory)
    assert own.post(reverse("admin:kb_membership_change", args=[theirs.pk]), {"role": "viewer"}).status_code == 302
    assert own.get(reverse("admin:kb_membership_add")).status_code == 403
    own_row = Membership.objects.get(user=carol)
    page = own.post(reverse("admin:kb_membership_change", args=[own_row.pk]), {"role": "viewer"})
    assert "last administrator" in page.content.decode()
    theirs.refresh_from_db()
    assert theirs.role == "admin"


def test_an_administrator_cannot_make_rows_of_another_organization(carol, other_organization):
    own = staff(carol)
    own.post(reverse("admin:kb_secret_add"), {"organization": other_organization.pk, "name": "TOKEN", "value": "v"})
    own.post(reverse("admin:kb_secret_add"), {"organization": "", "name": "TOKEN", "value": "v"})
    data = {"organization": other_organization.pk, "name": "bot", "role": "admin", "knowledge_base_ids": ""}
    own.post(reverse("admin:kb_apikey_add"), data)
    own.post(reverse("admin:kb_knowledgebase_add"), {"organization": other_organization.pk, "document": "name: x", "comment": ""})
    assert [model.objects.count() for model in (Secret, ApiKey, KnowledgeBase)] == [0, 0, 0]


def test_organizations_are_made_renamed_and_deleted_by_the_services(operator, organization):
    operator.post(reverse("admin:kb_organization_add"), {"name": "Newer"})
    made = Organization.objects.get(name="Newer")
    page = operator.post(reverse("admin:kb_organization_change", args=[made.pk]), {"name": "Acme"})
    assert "already an organization" in page.content.decode()
    operator.post(reverse("admin:kb_organization_delete", args=[made.pk]), {"post": "yes"})
    made.refresh_from_db()
    assert made.state == "deleting"


def test_a_user_is_made(operator):
    data = {"username": "zoe", "usable_password": "true", "password1": "a long password of zoe", "password2": "a long password of zoe"}
    assert operator.post(reverse("admin:kb_user_add"), data).status_code == 302
    assert User.objects.get(username="zoe").check_password("a long password of zoe")


# --- embedding models ---------------------------------------------------------------------------------------------------


def model_form(**values):
    plain = {"organization": "", "name": "small", "provider": "hashing", "model": "hashing", "dimension": 256, "max_input_tokens": 256}
    rest = {
        "endpoint": "",
        "credential": "",
        "parameters": "{}",
        "query_prefix": "",
        "document_prefix": "",
        "vector_index": "halfvec",
        "price_per_million_tokens": "",
    }
    return plain | rest | values


def test_a_model_is_registered_tried_and_deleted(operator, organization, hashing_model):
    taken = operator.post(reverse("admin:kb_embeddingmodel_add"), model_form())
    assert taken.status_code == 302, taken.context["errors"]
    made = EmbeddingModel.objects.get(name="small")
    assert made.space.dimension == 256
    tried = operator.get(reverse("admin:kb_embeddingmodel_try_it", args=[made.pk]), follow=True)
    assert "256 numbers in" in tried.content.decode()
    operator.post(reverse("admin:kb_embeddingmodel_delete", args=[made.pk]), {"post": "yes"})
    assert not EmbeddingModel.objects.filter(name="small").exists()


def test_what_does_not_hold_stands_at_its_field(operator, organization, hashing_model, knowledge_base):
    page = operator.post(reverse("admin:kb_embeddingmodel_add"), model_form(dimension=300))
    assert "but vectors are kept in tables of" in str(page.context["adminform"].form.errors["dimension"])
    used = operator.post(reverse("admin:kb_embeddingmodel_change", args=[hashing_model.pk]), model_form(query_prefix="q: "))
    assert "is used by Handbooks" in used.content.decode()
    delete = reverse("admin:kb_embeddingmodel_delete", args=[hashing_model.pk])
    assert "Handbooks" in operator.get(delete).content.decode()
    operator.post(delete, {"post": "yes"})
    assert EmbeddingModel.objects.filter(pk=hashing_model.pk).exists()
