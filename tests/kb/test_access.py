"""Who sees and edits what, as one table; what is hidden stands beside what is seen."""

import pytest

from config.errors import Forbidden, NotFound
from kb import access, services
from kb.access import Actor, Level
from kb.models import ApiKey, KnowledgeBase

pytestmark = pytest.mark.django_db

# Knowledge bases: open to the organization, private, private with a grant to Bob (viewer) and Dave (editor), Rival's.
EVERY = {"open", "private", "granted"}
TABLE = [
    # who, key role, key scope -> sees, edits
    ("carol", None, None, EVERY, EVERY),
    ("alice", None, None, {"open"}, {"open"}),
    ("bob", None, None, {"open", "granted"}, set()),
    ("dave", None, None, {"open", "granted"}, {"granted"}),
    ("mallory", None, None, {"foreign"}, {"foreign"}),
    ("carol", "admin", None, EVERY, EVERY),
    ("carol", "editor", None, {"open"}, {"open"}),
    ("carol", "viewer", None, {"open"}, set()),
    ("dave", "editor", None, {"open", "granted"}, {"granted"}),
    ("dave", "viewer", None, {"open", "granted"}, set()),
    ("carol", "editor", {"private"}, {"private"}, {"private"}),
    ("carol", "viewer", {"private", "open"}, {"private", "open"}, set()),
    (None, "viewer", None, {"open"}, set()),
    (None, "editor", None, {"open"}, {"open"}),
    (None, "admin", None, EVERY, EVERY),
    (None, "viewer", {"granted"}, {"granted"}, set()),
]


@pytest.fixture
def dave(organization):
    """A viewer of Acme with an editor's grant."""
    from kb.models import User

    user = User.objects.create(username="dave")
    services.add_member(organization, user=user, role="viewer")
    return user


@pytest.fixture
def known(organization, other_organization, hashing_model, bob, dave) -> dict[str, KnowledgeBase]:
    acme, rival = access.system_actor(organization), access.system_actor(other_organization)
    found = {
        "open": services.create_knowledge_base(acme, document={"name": "open", "visibility": "organization"}),
        "private": services.create_knowledge_base(acme, document={"name": "private"}),
        "granted": services.create_knowledge_base(acme, document={"name": "granted"}),
        "foreign": services.create_knowledge_base(rival, document={"name": "open", "visibility": "organization"}),
    }
    services.set_grant(found["granted"], user_id=bob.pk, level="viewer")
    services.set_grant(found["granted"], user_id=dave.pk, level="editor")
    return found


@pytest.fixture
def people(alice, bob, carol, dave, mallory):
    return {"alice": alice, "bob": bob, "carol": carol, "dave": dave, "mallory": mallory}


def make_actor(people, known, organization, who, role, scope) -> Actor:
    if role is None:
        return access.actor_for_user(people[who])
    ids = [known[name].id for name in scope or ()]
    key, _ = services.create_api_key(organization, name="key", role=role, knowledge_base_ids=ids, created_by=people.get(who))
    return access.actor_for_key(key)


@pytest.mark.parametrize(("who", "role", "scope", "sees", "edits"), TABLE)
def test_who_sees_and_edits(people, known, organization, who, role, scope, sees, edits):
    actor = make_actor(people, known, organization, who, role, scope)
    for name, row in known.items():
        assert allowed(actor, row, Level.VIEW) == ("yes" if name in sees else "absent"), name
        expected = "yes" if name in edits else "forbidden" if name in sees else "absent"
        assert allowed(actor, row, Level.EDIT) == expected, name
    assert set(access.knowledge_bases(actor)) == {known[name] for name in sees}
    assert set(access.knowledge_bases(actor, Level.EDIT)) == {known[name] for name in edits}


def allowed(actor: Actor, row: KnowledgeBase, level: Level) -> str:
    try:
        access.get_knowledge_base(actor, row.id, level)
    except NotFound:
        return "absent"
    except Forbidden:
        return "forbidden"
    return "yes"


def test_what_is_being_deleted_is_seen_by_nobody(known, organization):
    services.delete_knowledge_base(known["open"])
    assert known["open"] not in access.knowledge_bases(access.system_actor(organization))


def test_a_key_falls_with_its_maker_s_role(people, known, organization, carol):
    actor = make_actor(people, known, organization, "carol", "admin", None)
    assert actor.level == Level.ADMIN
    services.add_member(organization, user=people["alice"], role="admin")
    services.remove_member(organization, user_id=carol.pk)
    actor.api_key.refresh_from_db()
    fallen = access.actor_for_key(actor.api_key)
    assert (fallen.level, set(access.knowledge_bases(fallen))) == (Level.VIEW, {known["open"]})


@pytest.mark.parametrize("operator", [False, True])
def test_a_key_falls_with_its_maker_s_account(people, known, organization, carol, operator):
    carol.is_superuser = operator
    carol.save()
    actor = make_actor(people, known, organization, "carol", "admin", None)
    assert actor.level == Level.ADMIN
    carol.is_active = False
    carol.save()
    assert access.actor_for_key(ApiKey.objects.get(id=actor.api_key.id)).level == Level.VIEW
    carol.delete()  # nobody is left to cap the key
    assert access.actor_for_key(ApiKey.objects.get(id=actor.api_key.id)).level == Level.VIEW


def test_an_operator_needs_a_session(admin_user, organization):
    key, _ = services.create_api_key(organization, name="key", role="admin", created_by=admin_user)
    assert access.actor_for_user(admin_user).is_operator
    assert not access.actor_for_key(key).is_operator


def test_who_is_in_two_organizations_has_to_say_which(alice, organization, other_organization):
    services.add_member(other_organization, user=alice, role="viewer")
    with pytest.raises(access.InvalidInput, match="X-Lectern-Organization"):
        access.actor_for_user(alice)
    assert access.actor_for_user(alice, str(other_organization.id)).level == Level.VIEW
    assert access.actor_for_user(alice, organization.id).level == Level.EDIT


def test_a_stranger_cannot_choose_an_organization(mallory, organization):
    with pytest.raises(Forbidden):
        access.actor_for_user(mallory, organization.id)


def test_an_actor_that_stays_is_known_anew(organization, alice, carol):
    from django.utils import timezone

    from config.errors import NotAuthenticated

    person = access.actor_for_user(alice)
    key, _ = services.create_api_key(organization, name="k", role="admin", created_by=carol)
    keyed = access.actor_for_key(key)
    assert (access.renewed(person).level, access.renewed(keyed).level) == (Level.EDIT, Level.ADMIN)
    services.change_member(organization, user_id=alice.pk, role="viewer")
    assert access.renewed(person).level == Level.VIEW
    services.remove_member(organization, user_id=alice.pk)
    with pytest.raises(Forbidden):
        access.renewed(person)
    alice.is_active = False
    alice.save()
    with pytest.raises(NotAuthenticated):
        access.renewed(person)
    key.expires_at = timezone.now()
    key.save()
    with pytest.raises(NotAuthenticated):
        access.renewed(keyed)
