"""Who may touch what: the only functions that hand out tenant rows.

A row that is absent and a row that the actor cannot see give the same `NotFound`; one that can be seen but not touched
gives `Forbidden`.

| actor | sees | edits |
|---|---|---|
| organization admin | every knowledge base | every knowledge base |
| editor, viewer | those open to the organization, and private ones granted to them | editors the open ones; granted editors theirs |
| API key with knowledge bases named | exactly those | those, if its role allows |
| API key without | what its maker sees (nobody: the open ones) | what its maker edits, capped by its role |

A private document of a channel is its owner's alone, administrators of the organization included; one whose owner is gone is theirs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, TypeVar
from uuid import UUID

from django.db.models import F, Model, Q, QuerySet

from config.errors import Forbidden, InvalidInput, NotAuthenticated, NotFound
from config.tenancy import everyone, serve_everyone
from kb.models import (
    ApiKey,
    Chunk,
    DatasetPart,
    Document,
    EmbeddingModel,
    File,
    Grant,
    KnowledgeBase,
    Membership,
    Organization,
    Reranker,
    Role,
    ServiceBinding,
    Source,
    Upload,
    User,
)

T = TypeVar("T", bound=Model)


class Level(IntEnum):
    """What an action needs, on one row or in the whole organization."""

    VIEW = 1
    EDIT = 2
    ADMIN = 3


_ROLE_LEVEL = {Role.VIEWER: Level.VIEW, Role.EDITOR: Level.EDIT, Role.ADMIN: Level.ADMIN}


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks, in which organization. `level` is the organization-wide role, already capped by an API key's."""

    organization: Organization
    level: Level
    user: User | None = None
    api_key: ApiKey | None = None

    is_authenticated: ClassVar[bool] = True  # what DRF's permission asks of a request's user

    @property
    def is_operator(self) -> bool:
        return bool(self.user and self.user.is_superuser and self.api_key is None)

    @property
    def is_limited(self) -> bool:
        """An API key with named knowledge bases: what belongs to the organization itself is not for it."""
        return bool(self.api_key and self.api_key.knowledge_base_ids)

    @property
    def name(self) -> str:
        if self.api_key:
            return f"API key {self.api_key.name}"
        return self.user.get_username() if self.user else "system"


def actor_for_user(user: User, organization_id: str | UUID | None = None) -> Actor:
    """The actor of a session. A user in several organizations names one; `Forbidden` if there is none to choose."""
    memberships = Membership.objects.select_related("organization").filter(user=user, organization__state=Organization.State.ACTIVE)
    if organization_id:
        memberships = memberships.filter(organization_id=parse_id(organization_id))
    found = list(memberships.order_by("created_at")[:2])
    if len(found) > 1 and not organization_id:
        raise InvalidInput("You belong to several organizations. Name one in the header X-Lectern-Organization.")
    if user.is_superuser and (not found or organization_id):
        rows = Organization.objects.filter(state=Organization.State.ACTIVE)
        chosen = rows.filter(id=parse_id(organization_id)) if organization_id else rows
        if organization := chosen.order_by("created_at").first():
            return Actor(organization, Level.ADMIN, user=user)
    if not found:
        raise Forbidden("You are not a member of an organization here. Ask an administrator to add you.")
    return Actor(found[0].organization, _ROLE_LEVEL[Role(found[0].role)], user=user)


def actor_for_key(key: ApiKey) -> Actor:
    """The actor of an API key; its level is capped by what its maker still may do, if it has one."""
    level = _ROLE_LEVEL[Role(key.role)]
    maker = key.created_by
    if maker is not None and not (maker.is_superuser and maker.is_active):
        membership = Membership.objects.filter(user=maker, organization=key.organization).first() if maker.is_active else None
        level = min(level, _ROLE_LEVEL[Role(membership.role)]) if membership else Level.VIEW
    return Actor(key.organization, level, user=key.created_by, api_key=key)


def renewed(actor: Actor) -> Actor:
    """The actor as it stands now, for those that stay: `NotAuthenticated` when its key or account has ended, `Forbidden` when it is no
    member any more."""
    with everyone():
        return _renewed(actor)


def _renewed(actor: Actor) -> Actor:
    if actor.api_key:
        key = ApiKey.objects.select_related("organization", "created_by").filter(id=actor.api_key.id).first()
        if key is None or not key.is_usable or key.organization.state != Organization.State.ACTIVE:
            raise NotAuthenticated("This API key has expired or was revoked. Ask an administrator for a new one.")
        return actor_for_key(key)
    if actor.user is None:
        return actor
    user = User.objects.filter(id=actor.user.id, is_active=True).first()
    if user is None:
        raise NotAuthenticated("This account was deactivated. Ask an administrator.")
    return actor_for_user(user, actor.organization.id)


def system_actor(organization: Organization) -> Actor:
    """The actor of schedules and commands: an organization's own housekeeping."""
    return Actor(organization, Level.ADMIN)


def parse_id(value: str | UUID) -> UUID:
    """A UUID of a path or body. Anything else cannot name a row, so it is `NotFound` like every absent id."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(str(value))
    except ValueError:
        raise NotFound() from None


def knowledge_bases(actor: Actor, level: Level = Level.VIEW) -> QuerySet[KnowledgeBase]:
    """The knowledge bases that the actor may use at `level`."""
    rows = KnowledgeBase.objects.filter(organization=actor.organization, state=KnowledgeBase.State.ACTIVE)
    key = actor.api_key
    if key and actor.is_limited:
        return rows.filter(id__in=key.knowledge_base_ids) if level <= actor.level else rows.none()
    if actor.level >= Level.ADMIN or actor.is_operator:
        return rows
    if key and level > _ROLE_LEVEL[Role(key.role)]:
        return rows.none()
    granted = Grant.objects.filter(user=actor.user, organization=actor.organization)
    if level >= Level.EDIT:
        granted = granted.filter(level=Grant.Level.EDITOR)
    allowed = Q(id__in=granted.values("knowledge_base_id"))
    if actor.level >= level:
        allowed |= Q(visibility=KnowledgeBase.Visibility.ORGANIZATION)
    return rows.filter(allowed)


def get_knowledge_base(actor: Actor, knowledge_base_id: str | UUID, level: Level = Level.VIEW) -> KnowledgeBase:
    """`NotFound` if the actor cannot see it, `Forbidden` if it can be seen but not used at `level`."""
    identifier = parse_id(knowledge_base_id)
    found = knowledge_bases(actor).select_related("current", "organization").filter(id=identifier).first()
    if found is None:
        raise NotFound()
    if level > Level.VIEW and not knowledge_bases(actor, level).filter(id=identifier).exists():
        raise Forbidden("You may read this knowledge base but not change it. Ask for the role of an editor.")
    return found


# How rows that a person may keep private lead to their document.
_DOCUMENTS_OF = {Document: "", Chunk: "document__", DatasetPart: "document__"}


def rows(actor: Actor, model: type[T], level: Level = Level.VIEW) -> QuerySet[T]:
    """Rows of a model that hangs on a knowledge base, as far as the actor may use that at `level`; without private ones of others."""
    found = model._default_manager.filter(organization=actor.organization, knowledge_base__in=knowledge_bases(actor, level))
    return found.filter(readable(actor, _DOCUMENTS_OF[model])) if model in _DOCUMENTS_OF else found


def readable(actor: Actor, prefix: str = "") -> Q:
    """The condition that a document, below `prefix`, is not somebody else's private one. Without a user or key: housekeeping."""
    if actor.user is None and actor.api_key is None:
        return Q()
    mine = {f"{prefix}owner": actor.user} if actor.user is not None else {f"{prefix}owner_key": actor.api_key}
    found = Q(**{f"{prefix}visibility": Document.Visibility.ORGANIZATION}) | Q(**mine)
    if actor.level >= Level.ADMIN and not actor.is_limited:
        found |= Q(**{f"{prefix}owner": None, f"{prefix}owner_key": None})
    return found


def hidden_documents(actor: Actor, knowledge_base_ids: Iterable[UUID]) -> QuerySet[Document]:
    """Private documents of others: what a search has to keep from the actor."""
    private = Document.objects.filter(knowledge_base__in=list(knowledge_base_ids), visibility=Document.Visibility.PRIVATE)
    return private.exclude(readable(actor))


def files(actor: Actor, level: Level = Level.VIEW) -> QuerySet[File]:
    """The files of channels, every version of them, as far as the actor may use their documents at `level`."""
    documents = rows(actor, Document, level).filter(source__state=Source.State.ACTIVE)
    return File.objects.filter(organization=actor.organization, resource__in=documents)


def get_file(actor: Actor, identifier: str | UUID, level: Level = Level.VIEW) -> File:
    """A file by its own id, or the newest version of a document by the document's. Absent and somebody else's look the same."""
    wanted = parse_id(identifier)
    by_resource = Q(resource=wanted, resource__file=F("id"))
    related = ("blob", "created_by", "resource__source__channel", "resource__knowledge_base")
    found = files(actor).filter(Q(id=wanted) | by_resource).select_related(*related).first()
    if found is None:
        raise NotFound()
    if level > Level.VIEW and not knowledge_bases(actor, level).filter(id=found.resource.knowledge_base_id).exists():
        raise Forbidden("You may read this file but not change it. Ask for the role of an editor of its knowledge base.")
    return found


def service_bindings(actor: Actor) -> QuerySet[ServiceBinding]:
    """The organization's own bindings and the installation's."""
    return ServiceBinding.objects.filter(Q(organization=actor.organization) | Q(organization=None))


def get_row(actor: Actor, model: type[T], identifier: str | UUID, level: Level = Level.VIEW, **within: object) -> T:
    """One row of a model that hangs on a knowledge base; `within` narrows it (source=…), absent and foreign look the same."""
    found = rows(actor, model).filter(id=parse_id(identifier), **within).first()
    if found is None:
        raise NotFound()
    if level > Level.VIEW and not knowledge_bases(actor, level).filter(id=found.knowledge_base_id).exists():
        raise Forbidden("You may read this but not change it. Ask for the role of an editor of its knowledge base.")
    return found


def get_source(actor: Actor, knowledge_base: KnowledgeBase, source_id: str | UUID) -> Source:
    """A source of a knowledge base that the actor was already let into."""
    found = Source.objects.filter(
        organization=actor.organization, knowledge_base=knowledge_base, id=parse_id(source_id), state=Source.State.ACTIVE
    ).first()
    if found is None:
        raise NotFound()
    return found


def own_rows(actor: Actor, model: type[T], level: Level = Level.VIEW) -> QuerySet[T]:
    """Rows that belong to the organization itself (keys, traces, files), for those who have `level` in it."""
    require(actor, level)
    return model._default_manager.filter(organization=actor.organization)


def get_own_row(actor: Actor, model: type[T], identifier: str | UUID, level: Level = Level.VIEW) -> T:
    found = model._default_manager.filter(organization=actor.organization, id=parse_id(identifier)).first()
    if found is None:
        raise NotFound()
    require(actor, level)
    return found


def embedding_models(actor: Actor) -> QuerySet[EmbeddingModel]:
    """The organization's own models and the installation's."""
    return EmbeddingModel.objects.filter(Q(organization=actor.organization) | Q(organization=None))


def rerankers(actor: Actor) -> QuerySet[Reranker]:
    """The organization's own rerankers and the installation's."""
    return Reranker.objects.filter(Q(organization=actor.organization) | Q(organization=None))


def require(actor: Actor, level: Level) -> None:
    """`Forbidden` unless the actor has `level` in its organization."""
    if level >= Level.ADMIN and actor.is_limited:
        raise Forbidden("This API key is limited to named knowledge bases and cannot administer the organization.")
    if actor.level < level and not actor.is_operator:
        needed = {Level.VIEW: "a viewer", Level.EDIT: "an editor", Level.ADMIN: "an administrator"}[level]
        raise Forbidden(f"This needs the role of {needed} in the organization.")


def require_operator(actor: Actor) -> None:
    """`Forbidden` unless it is one. What follows in the request serves everyone: it is about rows of the whole installation."""
    if not actor.is_operator:
        raise Forbidden("This changes the whole installation; only an operator (a superuser, signed in) may do it.")
    serve_everyone()


def ids(values: Iterable[str | UUID]) -> list[UUID]:
    return [parse_id(value) for value in values]


def get_upload(actor: Actor, upload_id: str | UUID) -> Upload:
    """An upload that the actor asked for; those of others are as absent, in the same organization too."""
    found = Upload.objects.filter(organization=actor.organization, id=parse_id(upload_id)).first()
    if found is None or (found.created_by_id, found.api_key_id) != (actor.user and actor.user.id, actor.api_key and actor.api_key.id):
        raise NotFound()
    return found
