"""What a person does to the embeddings of a knowledge base: bring them up to date, go back to the model before, stop a change."""

from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.db.models import Max

from config.errors import Conflict, LecternError
from ingestion import wakes
from ingestion.models import IngestionRun
from ingestion.refill import refilling
from ingestion.refill.texts import forget_refusals
from ingestion.services.runs import forget_vectors, start_run
from kb import space_changes, vector_stores, versioning
from kb.access import Actor
from kb.embedding_status import count_outdated
from kb.models import Chunk, Document, KnowledgeBase, KnowledgeBaseVersion, Source, SpaceChange
from kb.stores.contents import NOTHING, read_contents


@dataclass(frozen=True, slots=True)
class Reembedding:
    """Of `total` chunks so many have a vector of the model that the current version names; `errors` say what stands in the way."""

    reembedded: int
    total: int
    errors: list[str]


def reembed(knowledge_base: KnowledgeBase, *, actor: Actor, anew: bool = False) -> Reembedding:
    """Begin, or go on with, whatever is missing for everything to be embedded and cut as the current version says; workers do it.

    A change of model that stopped begins again, chunks without a vector get one, and sources with documents that were cut under other
    settings run. With `anew` every vector is computed again, though nothing has changed: paid ones are not reused. Searches are answered
    all the time.
    """
    with transaction.atomic():
        locked = KnowledgeBase.objects.select_for_update(no_key=True, of=("self",)).select_related("current").get(id=knowledge_base.id)
        change = space_changes.open_change(locked)
        if change is None:
            change = _begin(locked, actor, anew)
        elif anew:
            raise Conflict("A change of the embedding model is under way. Wait for its end, or cancel it.")
        else:
            SpaceChange.objects.filter(id=change.id).update(not_before=None, failures=0)
        if change is not None:
            transaction.on_commit(partial(wakes.wake, change.id, refilling.STAGE))
    errors = _run_outdated(locked, actor)
    return reembedding_of(KnowledgeBase.objects.get(id=knowledge_base.id), errors=errors)


def reembedding_of(knowledge_base: KnowledgeBase, *, errors: list[str]) -> Reembedding:
    """How far it is."""
    named = knowledge_base.named_space or knowledge_base.space
    found = read_contents(organization=knowledge_base.organization_id, knowledge_bases=[knowledge_base.pk])
    total = found.get(knowledge_base.pk, NOTHING).chunks
    change = space_changes.last_change(knowledge_base)
    told = [change.error] if change and change.error and change.to_space_id == named.pk else []
    if change and change.is_open and change.until is not None:
        return Reembedding(min(change.filled, total), total, [*told, *errors])
    if vector_stores.stores_of(knowledge_base):
        return Reembedding(total, total, errors)  # a chunk that answers has its vector there
    return Reembedding(total - space_changes.holding(knowledge_base, named).count_lacking(), total, [*told, *errors])


def roll_back_model(knowledge_base: KnowledgeBase, *, actor: Actor, comment: str = "") -> KnowledgeBaseVersion:
    """Publish the current document with the model before. Where the old vectors are all there, it answers at once; what was published
    since is embedded for it first. `Conflict` where there is nothing to go back to."""
    change = space_changes.change_to_undo(knowledge_base)
    if change is None:
        raise Conflict("There is no change of the embedding model that could be rolled back: name the model in the document instead.")
    current = versioning.read(knowledge_base)
    model = change.from_space.embedding_model.name
    document = {**current.document, "embedding_model": model}
    said = comment or f"Rolled back to the embedding model {model}"
    return versioning.publish(knowledge_base, document=document, expected=current.number, actor=actor, comment=said)


def _begin(knowledge_base: KnowledgeBase, actor: Actor, anew: bool) -> SpaceChange | None:
    named = knowledge_base.named_space or knowledge_base.space
    if vector_stores.stores_of(knowledge_base):
        if anew:
            raise Conflict("Its vectors lie in an external store: purge its sources with reembed=true, and run them.")
        return None
    values: dict[str, int] = {}
    if named == knowledge_base.space:
        chunks = Chunk.objects.filter(organization=knowledge_base.organization_id, knowledge_base=knowledge_base)
        last = chunks.aggregate(last=Max("id"))["last"]
        if last is None or not (anew or space_changes.holding(knowledge_base, named).count_lacking()):
            return None
        if anew:
            forget_vectors(Document.objects.filter(knowledge_base=knowledge_base))
            values = {"until": last}
    forget_refusals(knowledge_base.organization_id, named.pk)
    return space_changes.begin(knowledge_base, version=knowledge_base.current, space=named, by=actor.name, **values)


def _run_outdated(knowledge_base: KnowledgeBase, actor: Actor) -> list[str]:
    """Start the sources that have something to cut anew; a run that is under way is as good."""
    errors = []
    for source in Source.objects.filter(id__in=count_outdated(knowledge_base).waiting):
        try:
            start_run(source, trigger=IngestionRun.Trigger.CHANGE, user=actor.user, by=actor.name)
        except LecternError as error:
            if "run_id" not in error.extra:
                errors.append(f"{source.name}: {error.message}")
    return errors
