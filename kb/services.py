"""What is done to knowledge bases and to who may use them. Each function owns its transaction."""

import hashlib
import re
import secrets as random
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from config import queues, secrets
from config.env import environment_secret
from config.errors import Conflict, InvalidInput, NotFound
from config.tenancy import everyone
from kb import access, schemas, versioning
from kb.access import Actor, Level
from kb.models import ApiKey, Grant, KnowledgeBase, Membership, Organization, Role, Secret, Source, User

KEY_PREFIX = "lk_"
LAST_USED_PRECISION = timedelta(minutes=5)


def create_knowledge_base(actor: Actor, *, document: dict, comment: str = "", hidden: bool = False) -> KnowledgeBase:
    """A new identity with its first version; its maker becomes an editor of it."""
    access.require(actor, Level.EDIT)
    with transaction.atomic():
        knowledge_base = KnowledgeBase.objects.create(
            organization=actor.organization, name=f"new {random.token_hex(16)}", hidden=hidden, created_by=actor.user
        )
        versioning.publish(knowledge_base, document=document, expected=None, actor=actor, comment=comment)
        if actor.user is not None:
            Grant.objects.create(organization=actor.organization, knowledge_base=knowledge_base, user=actor.user, level=Grant.Level.EDITOR)
        if actor.is_limited:
            raise InvalidInput("This API key is limited to named knowledge bases and could not use a new one. Use one without that limit.")
        if not access.knowledge_bases(actor).filter(id=knowledge_base.id).exists():
            # A key that belongs to no user: nobody could be granted anything by it.
            raise InvalidInput(
                "This API key belongs to no user, so it could not see a private knowledge base that it makes. Set visibility to "
                "organization, or use a key of a user or of an administrator."
            )
    return knowledge_base


def duplicate_knowledge_base(actor: Actor, knowledge_base: KnowledgeBase, *, name: str, number: int | None = None) -> KnowledgeBase:
    """A copy of the configuration under new ids; upload sources arrive empty."""
    document = schemas.load_stored(versioning.read(knowledge_base, number).document)
    copied = schemas.dump(schemas.without_source_ids(document)) | {"name": name}
    return create_knowledge_base(actor, document=copied, comment=f"Copied from {knowledge_base.name}")


def delete_knowledge_base(knowledge_base: KnowledgeBase, *, force: bool = False) -> None:
    """Take the knowledge base away at once (404 from now on); its rows and files go in batches afterwards.

    Raises `Conflict` naming the workflows and agents that use it, unless `force`.
    """
    users = users_of(knowledge_base)
    if users and not force:
        raise Conflict(f"This knowledge base is used by {', '.join(users)}. Unbind it first, or delete with force=true.", used_by=users)
    with transaction.atomic():
        if not _retire(KnowledgeBase.objects.filter(id=knowledge_base.id, state=KnowledgeBase.State.ACTIVE)):
            raise NotFound()


def _retire(knowledge_bases: QuerySet[KnowledgeBase]) -> int:
    """Knowledge bases in state `deleting`, their sources in state `removing`, so that runs stop; returns how many. In a transaction."""
    ids = list(knowledge_bases.select_for_update(no_key=True).order_by("id").values_list("id", flat=True))
    KnowledgeBase.objects.filter(id__in=ids).update(state=KnowledgeBase.State.DELETING)
    Source.objects.filter(knowledge_base__in=ids).update(state=Source.State.REMOVING)
    transaction.on_commit(partial(queues.nudge, "ingestion.housekeep"))
    return len(ids)


def users_of(knowledge_base: KnowledgeBase) -> list[str]:
    """Names of what is published and uses the knowledge base. Workflows and agents register here when they arrive."""
    return []


def set_grant(knowledge_base: KnowledgeBase, *, user_id: int, level: str | None) -> None:
    """Open a knowledge base to a member (`viewer` or `editor`), or close it again (None)."""
    member = Membership.objects.filter(organization=knowledge_base.organization_id, user_id=user_id).first()
    if member is None:
        raise InvalidInput("Only a member of the organization can be given a grant. Add the user to the organization first.")
    if level is None:
        Grant.objects.filter(knowledge_base=knowledge_base, user_id=user_id).delete()
        return
    if level not in Grant.Level.values:
        raise InvalidInput(f"level is '{level}': write viewer or editor.")
    Grant.objects.update_or_create(
        knowledge_base=knowledge_base, user_id=user_id, defaults={"level": level, "organization_id": knowledge_base.organization_id}
    )


def remove_grant(knowledge_base: KnowledgeBase, *, user_id: int) -> None:
    """Take a grant back; `NotFound` if there is none."""
    removed, _ = Grant.objects.filter(knowledge_base=knowledge_base, user_id=user_id).delete()
    if not removed:
        raise NotFound()


def create_organization(*, name: str, admin: User | None = None) -> Organization:
    with transaction.atomic():
        organization = Organization()
        _name_organization(organization, name)
        if admin is not None:
            Membership.objects.create(organization=organization, user=admin, role=Role.ADMIN)
    return organization


def rename_organization(organization: Organization, *, name: str) -> None:
    _name_organization(organization, name)


def _name_organization(organization: Organization, name: str) -> None:
    organization.name = name
    try:
        with transaction.atomic():
            organization.save()
    except IntegrityError as error:
        raise Conflict(f"There is already an organization named '{name}'. Choose another name.") from error


def delete_organization(organization: Organization) -> None:
    """Take it away at once, with everything in it (404 from now on); rows and files go in batches afterwards."""
    with transaction.atomic():
        Organization.objects.filter(id=organization.id).update(state=Organization.State.DELETING)
        _retire(KnowledgeBase.objects.filter(organization=organization, state=KnowledgeBase.State.ACTIVE))


def add_member(organization: Organization, *, user: User, role: str) -> Membership:
    """Add a user to an organization, or change the role there."""
    membership, _ = Membership.objects.update_or_create(organization=organization, user=user, defaults={"role": role})
    return membership


def change_member(organization: Organization, *, user_id: int, role: str) -> Membership:
    """Give a member another role. `NotFound` for who is none; the last administrator stays one."""
    if role not in Role.values:
        raise InvalidInput(f"role must be one of {', '.join(Role.values)}.")
    with transaction.atomic():
        membership = _locked_membership(organization, user_id)
        if role != Role.ADMIN:
            _refuse_last_admin(organization, membership)
        membership.role = role
        membership.save(update_fields=["role"])
    return membership


def remove_member(organization: Organization, *, user_id: int) -> None:
    """Take a user out of an organization, grants included. The API keys that the user made go on as a viewer's, until revoked."""
    with transaction.atomic():
        membership = _locked_membership(organization, user_id)
        _refuse_last_admin(organization, membership)
        Grant.objects.filter(organization=organization, user_id=user_id).delete()
        membership.delete()


def _locked_membership(organization: Organization, user_id: int) -> Membership:
    # The organization's row is locked, so that two administrators cannot remove each other at once.
    Organization.objects.select_for_update(no_key=True).get(id=organization.id)
    membership = Membership.objects.select_related("user").filter(organization=organization, user_id=user_id).first()
    if membership is None:
        raise NotFound()
    return membership


def _refuse_last_admin(organization: Organization, membership: Membership) -> None:
    admins = Membership.objects.filter(organization=organization, role=Role.ADMIN)
    if membership.role == Role.ADMIN and not admins.exclude(id=membership.id).exists():
        raise Conflict("This is the last administrator of the organization. Make somebody else one first.")


def key_digest(value: str) -> bytes:
    """Keys are 256 bits of chance, so a plain hash is enough: there is nothing to guess."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()


def create_api_key(
    organization: Organization,
    *,
    name: str,
    role: str = Role.VIEWER,
    knowledge_base_ids: list[UUID] | None = None,
    expires_at: datetime | None = None,
    created_by: User | None = None,
    made_with: ApiKey | None = None,
) -> tuple[ApiKey, str]:
    """The row and the key's value, which is shown once and kept nowhere. The new one does not outlive `made_with`, the key that asks."""
    wanted = set(knowledge_base_ids or [])
    known = KnowledgeBase.objects.filter(organization=organization, state=KnowledgeBase.State.ACTIVE, id__in=wanted)
    if known.count() != len(wanted):
        raise InvalidInput("knowledge_base_ids names a knowledge base that is not there. Correct the ids.")
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput("expires_at lies in the past. Choose a later time, or leave it out.")
    end = made_with.expires_at if made_with else None
    if end is not None and (expires_at is None or expires_at > end):
        raise InvalidInput(f"A key does not outlive the one that makes it: give an expires_at of at most {end.isoformat()}.")
    value = KEY_PREFIX + random.token_urlsafe(32)
    key = ApiKey.objects.create(
        organization=organization,
        name=name,
        prefix=value[:8],
        digest=key_digest(value),
        role=role,
        knowledge_base_ids=sorted(wanted),
        expires_at=expires_at,
        created_by=created_by,
    )
    return key, value


def use_api_key(value: str) -> ApiKey | None:
    """The key with this value, if it may be used; when it was last used is noted every few minutes."""
    key = ApiKey.objects.select_related("organization", "created_by").filter(digest=key_digest(value)).first()
    if key is None or not key.is_usable or key.organization.state != Organization.State.ACTIVE:
        return None
    if key.last_used_at is None or timezone.now() - key.last_used_at > LAST_USED_PRECISION:
        ApiKey.objects.filter(id=key.id).update(last_used_at=timezone.now())
    return key


def revoke_api_key(key: ApiKey) -> None:
    """End a key for good. Its row stays, so that lists show what it was."""
    ApiKey.objects.filter(id=key.id, revoked_at=None).update(revoked_at=timezone.now())


def set_secret(*, organization: Organization | None, name: str, value: str) -> Secret:
    """Store or replace a secret. The value is encrypted here and never leaves again but to the provider that it is for."""
    if not value:
        raise InvalidInput("A secret needs a value.")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,99}", name):
        raise InvalidInput("The name of a secret has 1 to 100 letters, digits, '_', '-' and '.', and starts with a letter. Choose another.")
    row, _ = Secret.objects.update_or_create(organization=organization, name=name, defaults={"ciphertext": secrets.encrypt(value)})
    return row


def delete_secret(actor: Actor, secret_id: str | UUID) -> None:
    """Forget a secret of the organization, or as an operator one of the installation."""
    installation = Secret.objects.filter(organization=None, id=access.parse_id(secret_id))
    if actor.is_operator:
        with everyone():
            if installation.delete()[0]:
                return
    access.get_own_row(actor, Secret, secret_id, Level.ADMIN).delete()


def secret_value(organization_id: UUID | None, name: str, *, own_only: bool = False) -> str:
    """The value of a secret by name: the organization's own, else the installation's, else `LECTERN_SECRET__<NAME>` of the environment.

    `own_only` where an organization chose the address that the value goes to: it must not be able to send the installation's there.
    """
    rows = Secret.objects.filter(name=name)
    row = rows.filter(organization_id=organization_id).first() if organization_id else None
    if row is None and not own_only:
        row = rows.filter(organization=None).first()
    if row is not None:
        return secrets.decrypt(bytes(row.ciphertext))
    value = None if own_only else environment_secret(name)
    if value is None:
        elsewhere = "" if own_only else ", or set it in the environment"
        raise InvalidInput(f"There is no secret named '{name}'. Store it under Secrets{elsewhere}.")
    return value
