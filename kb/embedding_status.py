"""How the embeddings of a knowledge base stand: what answers, what the current version names, what is missing, how a change gets on."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from config.registry import Registry
from kb import vector_stores
from kb.models import EmbeddingModel, EmbeddingSpace, KnowledgeBase, SpaceChange
from kb.schemas.providers import WITHOUT_EFFECT_ON_VECTORS
from kb.space_changes import change_to_undo, holding, last_change
from kb.stores.contents import NOTHING, read_contents

State = SpaceChange.State


@dataclass(frozen=True, slots=True)
class Outdated:
    """Documents that answer and were cut or described under other settings than those of now: the next run makes them anew."""

    documents: int
    of: int
    waiting: tuple[UUID, ...] = ()
    """Sources whose run would do that."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    name: str
    provider: str
    model: str
    dimension: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """Vectors of one space. `use`: answers, filling, grace (for the way back) or left (goes with the next housekeeping)."""

    space: int
    model: ModelFacts
    use: str
    vectors: int
    chunks: int


@dataclass(frozen=True, slots=True)
class ChangeProgress:
    id: UUID
    state: str
    from_model: str
    to_model: str
    requested_by: str
    chunks: int
    missing: int
    filled: int
    computed: int
    too_long: int
    per_second: float
    eta_seconds: int | None
    error: str
    reason: str
    started_at: datetime
    switched_at: datetime | None
    grace_until: datetime | None
    finished_at: datetime | None
    can_roll_back: bool


@dataclass(frozen=True, slots=True)
class Embeddings:
    """`stale`: what answers is not what the current version asks for; `reason` says why, and what to do."""

    stale: bool
    reason: str
    model: ModelFacts
    answering: ModelFacts
    chunks: int
    missing: int
    coverage: list[Coverage]
    outdated: Outdated
    change: ChangeProgress | None


def look(knowledge_base: KnowledgeBase) -> Embeddings:
    """Counts rows: milliseconds for thousands of chunks, a second for a million."""
    answering = knowledge_base.space
    named = knowledge_base.named_space or answering
    chunks = (
        read_contents(organization=knowledge_base.organization_id, knowledge_bases=[knowledge_base.pk])
        .get(knowledge_base.pk, NOTHING)
        .chunks
    )
    change = last_change(knowledge_base)
    outside = vector_stores.stores_of(knowledge_base)
    missing = holding(knowledge_base, answering).count_lacking() if chunks and not outside else 0
    outdated = count_outdated(knowledge_base)
    reasons = [*_of_model(answering, named, change), *_of_vectors(missing, chunks, change), *_of_settings(outdated)]
    return Embeddings(
        stale=bool(reasons),
        reason=" ".join(reasons),
        model=_facts(named.embedding_model),
        answering=_facts(answering.embedding_model),
        chunks=chunks,
        missing=missing,
        coverage=_coverage(knowledge_base, chunks, outside),
        outdated=outdated,
        change=_progress(knowledge_base, change, chunks) if change else None,
    )


def count_outdated(knowledge_base: KnowledgeBase) -> Outdated:
    """Of all kinds of settings that something registers for."""
    kinds: Registry[Callable[[KnowledgeBase], Outdated]] = Registry("count of outdated documents", settings.OUTDATED)
    found = [kinds.load(name)(knowledge_base) for name in kinds]
    waiting = tuple(dict.fromkeys(source for each in found for source in each.waiting))
    return Outdated(sum(each.documents for each in found), max((each.of for each in found), default=0), waiting)


def difference(old: EmbeddingModel, new: EmbeddingModel) -> str:
    """In which of provider, model, dimension and settings two registrations differ, in words; "" if they give the same vectors."""
    told = [
        f"{name} {getattr(old, name)!r} → {getattr(new, name)!r}"
        for name in ("provider", "model", "dimension", "query_prefix", "document_prefix")
        if getattr(old, name) != getattr(new, name)
    ]
    keys = sorted((old.parameters.keys() | new.parameters.keys()) - set(WITHOUT_EFFECT_ON_VECTORS))
    told += [f"setting {key}" for key in keys if old.parameters.get(key) != new.parameters.get(key)]
    return ", ".join(told)


def _facts(model: EmbeddingModel) -> ModelFacts:
    return ModelFacts(model.name, model.provider, model.model, model.dimension)


def _of_model(answering: EmbeddingSpace, named: EmbeddingSpace, change: SpaceChange | None) -> list[str]:
    if answering == named:
        return []
    old, new = answering.embedding_model, named.embedding_model
    differs = difference(old, new) or "the same vectors under another name"
    told = f"Searches are answered by the model {old.name}; the current version names {new.name} ({differs})."
    if change is None or change.to_space_id != named.pk or change.state in (State.SUPERSEDED, State.ROLLED_BACK):
        return [f"{told} Re-embed to change over."]
    if change.state == State.CANCELLED:
        return [f"{told} The change was stopped. Re-embed to go on, or roll back."]
    if change.state == State.FAILED:
        return [f"{told} The change failed: {change.error} Mend that and re-embed, or roll back."]
    return [f"{told} The change is under way." + (f" It waits: {change.error}" if change.error else "")]


def _of_vectors(missing: int, chunks: int, change: SpaceChange | None) -> list[str]:
    if not missing:
        return []
    failed = f" The last attempt failed: {change.error}" if change and change.is_in_place and change.state == State.FAILED else ""
    return [f"{missing:,} of {chunks:,} chunks have no vector and are found by their words alone.{failed} Re-embed to add them."]


def _of_settings(outdated: Outdated) -> list[str]:
    if not outdated.documents:
        return []
    told = f"{outdated.documents:,} of {outdated.of:,} documents were cut under other settings"
    return [f"{told}; they answer as they are until a run cuts them anew."]


def _coverage(knowledge_base: KnowledgeBase, chunks: int, outside: Collection[int]) -> list[Coverage]:
    """In a store over a network (`outside`) a chunk that answers has its vector: it was written first."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT space FROM embedding_use WHERE kb = %s", [knowledge_base.pk])
        used = {row[0] for row in cursor.fetchall()} | {knowledge_base.space_id}
    live = SpaceChange.objects.filter(knowledge_base=knowledge_base, state__in=SpaceChange.LIVE)
    uses = {change.from_space_id: "grace" for change in live if change.state == State.GRACE and change.grace_until > timezone.now()}
    uses |= {change.to_space_id: "filling" for change in live if change.is_open} | {knowledge_base.space_id: "answers"}
    spaces = EmbeddingSpace.objects.select_related("embedding_model").filter(id__in=used | set(uses)).order_by("id")
    return [
        Coverage(
            space=space.pk,
            model=_facts(space.embedding_model),
            use=uses.get(space.pk, "left"),
            vectors=chunks if space.pk in outside else holding(knowledge_base, space).count(),
            chunks=chunks,
        )
        for space in spaces
    ]


def _progress(knowledge_base: KnowledgeBase, change: SpaceChange, chunks: int) -> ChangeProgress:
    missing = 0
    if change.is_open:
        renewed = change.until is not None
        missing = max(0, change.total - change.filled) if renewed else holding(knowledge_base, change.to_space).count_lacking()
    undo = change_to_undo(knowledge_base)
    return ChangeProgress(
        id=change.id,
        state=change.state,
        from_model=change.from_model,
        to_model=change.to_model,
        requested_by=change.requested_name,
        chunks=chunks if change.is_open else change.total,
        missing=missing,
        filled=change.filled,
        computed=change.computed,
        too_long=change.too_long,
        per_second=round(change.per_second, 1),
        eta_seconds=ceil(missing / change.per_second) if change.is_open and change.per_second else None,
        error=change.error,
        reason=change.reason,
        started_at=change.created_at,
        switched_at=change.switched_at,
        grace_until=change.grace_until,
        finished_at=change.finished_at,
        can_roll_back=undo is not None and undo.id == change.id,
    )
