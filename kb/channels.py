"""What is done to channels, and what their ingest policies come to."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from config import queues
from config.errors import Conflict, Forbidden, InvalidInput, NotFound
from kb import access, bindings, schemas
from kb.access import Actor, Level
from kb.models import Channel, KnowledgeBase, Source
from kb.schemas.base import clean_name, fold
from kb.schemas.families import UNKNOWN
from kb.schemas.merging import Merged, load_policy, merge_policy
from kb.versioning import rules

ABSENT = "There is no such channel, or you cannot see it. Name one of GET /api/v1/channels, by its id or its name."
NO_DEFAULT = "Name a channel: no channel of your organization takes the files that name none. GET /api/v1/channels lists them."


@dataclass(frozen=True, slots=True)
class ChannelInput:
    """What a channel is made of, and changed to."""

    name: str
    knowledge_base_id: UUID | str
    description: str = ""
    policy: Mapping[str, Any] | None = None
    is_default: bool = False


def get_channel(actor: Actor, identifier: str | UUID, level: Level = Level.VIEW) -> Channel:
    found = access.get_row(actor, Channel, identifier, level, source__state=Source.State.ACTIVE)
    return Channel.objects.select_related("knowledge_base__current", "source").get(id=found.id)


def find_channel(actor: Actor, named: str) -> Channel:
    """The channel that an upload names by id or name, or the default one where it names none. The uploader must be an editor there."""
    rows = access.rows(actor, Channel).filter(source__state=Source.State.ACTIVE)
    wanted = named.strip()
    if not wanted:
        found = rows.filter(is_default=True).first()
        if found is None:
            raise InvalidInput(NO_DEFAULT, errors=[{"path": "channel", "message": NO_DEFAULT}])
        return get_channel(actor, found.id, Level.EDIT)
    try:
        found = rows.filter(id=UUID(wanted)).first()
    except ValueError:
        found = next((row for row in rows if fold(row.name) == fold(wanted)), None)
    if found is None:
        raise NotFound(ABSENT)
    return get_channel(actor, found.id, Level.EDIT)


def create_channel(actor: Actor, *, wanted: ChannelInput) -> Channel:
    """A channel into a knowledge base that the actor may edit, with an internal source of its own."""
    knowledge_base = access.get_knowledge_base(actor, wanted.knowledge_base_id, Level.EDIT)
    with transaction.atomic():
        # Held against the knowledge base's deletion, which takes its sources along.
        rows = KnowledgeBase.objects.select_for_update(no_key=True).filter(id=knowledge_base.id, state=KnowledgeBase.State.ACTIVE)
        held = rows.first()
        if held is None:
            raise NotFound()
        channel = Channel(organization=actor.organization, knowledge_base=held, created_by=actor.user)
        _fill(actor, channel, wanted)
        channel.source = Source.objects.create(
            organization=actor.organization, knowledge_base=held, kind=Source.Kind.CHANNEL, name=channel.name
        )
        _save(actor, channel)
    return channel


def change_channel(actor: Actor, channel: Channel, *, wanted: ChannelInput) -> Channel:
    """Replace what a channel says. It keeps its knowledge base: its documents live there. Files that came before keep what was made of
    them until they are taken in again (retry, a new version, or a run of the channel's source)."""
    with transaction.atomic():
        locked = Channel.objects.select_for_update(no_key=True, of=("self",)).filter(id=channel.id).first()
        if locked is None:
            raise NotFound()
        if access.parse_id(wanted.knowledge_base_id) != locked.knowledge_base_id:
            raise Conflict("A channel keeps its knowledge base, because its documents are there. Make another channel.")
        _fill(actor, locked, wanted)
        Source.objects.filter(id=locked.source_id).update(name=locked.name)
        _save(actor, locked)
    return locked


def delete_channel(channel: Channel) -> None:
    """Take a channel away, with every file of it: nothing of them answers from now on, and they are cleared away in batches."""
    with transaction.atomic():
        if not Channel.objects.filter(id=channel.id).delete()[0]:
            raise NotFound()
        Source.objects.filter(id=channel.source_id).update(state=Source.State.REMOVING)
        transaction.on_commit(partial(queues.nudge, "ingestion.housekeep"))


def explain_policy(channel: Channel, *, family: str, upload: Mapping[str, Any] | None = None) -> Merged:
    """The policy of a file of this channel, with where each key came from. `InvalidInput` for what is not bound or does not fit."""
    document = schemas.load_stored(channel.knowledge_base.current.document)
    merged = merge_policy(family=family, chunking=document.chunking, channel=channel.policy, upload=upload or {})
    _check_services(channel.organization_id, merged)
    return merged


def load_upload_policy(document: Any) -> dict[str, Any]:
    """What an upload says of its policy; `InvalidInput` names each place."""
    return load_policy(document, rules=rules(), path="policy")


def _check_services(organization_id: UUID, merged: Merged) -> None:
    policy = merged.policy
    for purpose, block in bindings.BLOCKS.items():
        bindings.bound_service(organization_id, purpose=purpose, service=getattr(policy, block))


def _fill(actor: Actor, channel: Channel, wanted: ChannelInput) -> None:
    try:
        channel.name = clean_name(wanted.name)
    except ValueError as error:
        raise InvalidInput(f"The channel is not valid. name: {error}", errors=[{"path": "name", "message": str(error)}]) from None
    if wanted.is_default and not channel.is_default:
        access.require(actor, Level.EDIT)
        if actor.is_limited:
            raise Forbidden("This API key is limited to named knowledge bases; the default channel is the organization's.")
    channel.description, channel.is_default = wanted.description, wanted.is_default
    channel.policy = load_policy(wanted.policy or {}, rules=rules(), path="policy")
    explain_policy(channel, family=UNKNOWN)


def _save(actor: Actor, channel: Channel) -> None:
    if channel.is_default:  # the flag moves: two defaults cannot stand beside each other
        Channel.objects.filter(organization=actor.organization, is_default=True).exclude(id=channel.id).update(is_default=False)
    try:
        with transaction.atomic():
            channel.save()
    except IntegrityError as error:
        if "channel_name_once" in str(error):
            raise Conflict(f"There is already a channel named '{channel.name}'. Choose another name.") from error
        if "channel_one_default" in str(error):
            raise Conflict("Another channel was made the default at the same moment. Try again.", retry_after=1) from error
        raise
