"""What is done to knowledge bases and to who may use them. Each function owns its transaction."""

import hashlib
import secrets as random
from datetime import datetime
from uuid import UUID

from django.db import transaction

from config import secrets
from config.errors import Conflict, InvalidInput, NotFound
from kb import access, schemas, versioning
from kb.access import Actor, Level
from kb.models import ApiKey, Grant, KnowledgeBase, Membership, Organization, Role, Secret, User

KEY_PREFIX = "lk_"


def create_knowledge_base(actor: Actor, *, document: dict, comment: str = "", hidden: bool = False) -> KnowledgeBase:
    """A new identity with its first version; its maker becomes an editor of it."""
    access.require(actor, Level.EDIT)
    with transaction.atomic():
        knowledge_base = KnowledgeBase.objects.create(
            organization=actor.organization, name=f"new {random.token_hex(16)}", hidden=hidden, created_by=actor.user
        )
        versioning.publish(knowledge_base, document=document, expected=None, actor=actor, comment=comment)
        if actor.user is not None:
            Grant.objects.create(
                organization=actor.organization, knowledge_base=knowledge_base, user=actor.user, level=Grant.Level.EDITOR
            )
        if actor.api_key and actor.api_key.knowledge_base_ids:
            raise InvalidInput("This API key is limited to named knowledge bases and could not use a new one. Use a key without that limit.")
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
    changed = KnowledgeBase.objects.filter(id=knowledge_base.id, state=KnowledgeBase.State.ACTIVE).update(state=KnowledgeBase.State.DELETING)
    if not changed:
        raise NotFound()


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


def create_organization(*, name: str, admin: User | None = None) -> Organization:
    with transaction.atomic():
        organization = Organization.objects.create(name=name)
        if admin is not None:
            Membership.objects.create(organization=organization, user=admin, role=Role.ADMIN)
    return organization


def add_member(organization: Organization, *, user: User, role: str) -> Membership:
    """Add a user to an organization, or change the role there."""
    membership, _ = Membership.objects.update_or_create(organization=organization, user=user, defaults={"role": role})
    return membership


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
) -> tuple[ApiKey, str]:
    """The row and the key's value, which is shown once and kept nowhere."""
    value = KEY_PREFIX + random.token_urlsafe(32)
    key = ApiKey.objects.create(
        organization=organization,
        name=name,
        prefix=value[:8],
        digest=key_digest(value),
        role=role,
        knowledge_base_ids=knowledge_base_ids or [],
        expires_at=expires_at,
        created_by=created_by,
    )
    return key, value


def set_secret(*, organization: Organization | None, name: str, value: str) -> Secret:
    """Store or replace a secret. The value is encrypted here and never leaves again but to the provider that it is for."""
    if not value:
        raise InvalidInput("A secret needs a value.")
    row, _ = Secret.objects.update_or_create(organization=organization, name=name, defaults={"ciphertext": secrets.encrypt(value)})
    return row


def secret_value(organization_id: UUID | None, name: str) -> str:
    """The value of a secret by name: the organization's own, else the installation's, else `LECTERN_SECRET_<NAME>` of the environment."""
    rows = Secret.objects.filter(name=name)
    row = (organization_id and rows.filter(organization_id=organization_id).first()) or rows.filter(organization=None).first()
    if row is not None:
        return secrets.decrypt(bytes(row.ciphertext))
    value = secrets.from_environment(name)
    if value is None:
        raise InvalidInput(f"There is no secret named '{name}'. Store it under Secrets, or set it in the environment.")
    return value

