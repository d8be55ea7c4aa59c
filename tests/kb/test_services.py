"""Services of tenants: grants, members, keys, secrets, deletion."""

from datetime import timedelta

import pytest
from django.utils import timezone

from config.errors import Conflict, InvalidInput, NotFound
from kb import access, services, versioning
from kb.access import actor_for_key
from kb.embedding import spec_of
from kb.models import EmbeddingModel, Grant, KnowledgeBase, Membership, Secret

pytestmark = pytest.mark.django_db


def test_the_maker_of_a_knowledge_base_may_edit_it(actor, hashing_model):
    made = services.create_knowledge_base(actor, document={"name": "Private"})
    assert Grant.objects.get(knowledge_base=made).user == actor.user


def test_a_limited_key_makes_no_knowledge_base(organization, knowledge_base):
    key, _ = services.create_api_key(organization, name="k", role="editor", knowledge_base_ids=[knowledge_base.id])
    with pytest.raises(InvalidInput, match="limited to named knowledge bases"):
        services.create_knowledge_base(actor_for_key(key), document={"name": "New"})
    assert access.knowledge_bases(access.system_actor(organization)).count() == 1


def test_a_grant_goes_with_its_member(organization, knowledge_base, bob, carol):
    services.set_grant(knowledge_base, user_id=bob.pk, level="viewer")
    services.remove_member(organization, user_id=bob.pk)
    assert not Grant.objects.filter(user=bob).exists()
    with pytest.raises(NotFound):
        services.remove_member(organization, user_id=bob.pk)


def test_only_members_get_grants_and_only_at_known_levels(knowledge_base, bob, mallory):
    with pytest.raises(InvalidInput, match="Only a member"):
        services.set_grant(knowledge_base, user_id=mallory.pk, level="viewer")
    with pytest.raises(InvalidInput, match="write viewer or editor"):
        services.set_grant(knowledge_base, user_id=bob.pk, level="owner")


def test_the_last_administrator_stays(organization, carol, alice):
    with pytest.raises(Conflict, match="last administrator"):
        services.change_member(organization, user_id=carol.pk, role="viewer")
    services.change_member(organization, user_id=alice.pk, role="admin")
    services.change_member(organization, user_id=carol.pk, role="viewer")
    assert Membership.objects.get(user=carol).role == "viewer"


def test_a_key_is_kept_as_a_hash(organization):
    key, value = services.create_api_key(organization, name="bot")
    assert value.startswith("lk_")
    assert bytes(key.digest) == services.key_digest(value)
    assert value not in str(key.__dict__)
    services.revoke_api_key(key)
    key.refresh_from_db()
    revoked = key.revoked_at
    services.revoke_api_key(key)
    key.refresh_from_db()
    assert (key.is_usable, key.revoked_at) == (False, revoked)


def test_a_key_expires(organization):
    key, _ = services.create_api_key(organization, name="bot", expires_at=timezone.now() + timedelta(seconds=60))
    assert key.is_usable
    key.expires_at = timezone.now()
    assert not key.is_usable


def test_secrets_are_looked_up_from_near_to_far(organization, other_organization, monkeypatch):
    monkeypatch.setenv("LECTERN_SECRET__TOKEN", "of the environment")
    assert services.secret_value(organization.id, "TOKEN") == "of the environment"
    services.set_secret(organization=None, name="TOKEN", value="of the installation")
    assert services.secret_value(organization.id, "TOKEN") == "of the installation"
    services.set_secret(organization=organization, name="TOKEN", value="of Acme")
    assert services.secret_value(organization.id, "TOKEN") == "of Acme"
    assert services.secret_value(other_organization.id, "TOKEN") == "of the installation"
    assert b"of Acme" not in bytes(Secret.objects.get(organization=organization).ciphertext)


def test_what_an_organization_addresses_itself_gets_only_its_own_secrets(organization, monkeypatch):
    """Else its administrator could have the installation's keys sent to a server of theirs."""
    monkeypatch.setenv("LECTERN_SECRET__TOKEN", "of the environment")
    services.set_secret(organization=None, name="TOKEN", value="of the installation")
    values = {"provider": "openai", "model": "m", "dimension": 256, "max_input_tokens": 256, "credential": "TOKEN"}
    own = EmbeddingModel(organization=organization, name="own", endpoint="https://elsewhere.example/v1", **values)
    with pytest.raises(InvalidInput, match="no secret named 'TOKEN'"):
        spec_of(own)
    shared = EmbeddingModel(name="shared", **values)
    assert spec_of(shared, organization_id=organization.id).credential == "of the installation"


@pytest.mark.parametrize("name", ["", "1", "a b", "_x", "x" * 101, "ä"])
def test_a_secret_needs_a_name_that_a_document_can_write(organization, name):
    with pytest.raises(InvalidInput, match="name of a secret"):
        services.set_secret(organization=organization, name=name, value="v")


def test_a_deleted_knowledge_base_is_gone_once(knowledge_base):
    services.delete_knowledge_base(knowledge_base)
    with pytest.raises(NotFound):
        services.delete_knowledge_base(knowledge_base)
    with pytest.raises(NotFound):
        versioning.publish(knowledge_base, document={"name": "x"}, expected=1, actor=access.system_actor(knowledge_base.organization))


def test_a_name_is_free_again_after_deletion(actor, knowledge_base):
    services.delete_knowledge_base(knowledge_base)
    assert services.create_knowledge_base(actor, document={"name": "Handbooks"}).name == "Handbooks"


def test_two_organizations_cannot_share_a_name(organization):
    with pytest.raises(Conflict, match="already an organization"):
        services.create_organization(name="Acme")


def test_a_key_of_nobody_does_not_make_what_it_could_not_see(organization, hashing_model):
    key, _ = services.create_api_key(organization, name="bot", role="editor")
    with pytest.raises(InvalidInput, match="could not see a private knowledge base"):
        services.create_knowledge_base(actor_for_key(key), document={"name": "Lost"})
    assert not KnowledgeBase.objects.filter(name="Lost").exists()
    assert services.create_knowledge_base(actor_for_key(key), document={"name": "Lost", "visibility": "organization"})
