"""`apply`: make knowledge bases what files say. The same files again change nothing, so that a repository can be the place to edit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from config.errors import Conflict, InvalidInput, NotFound, StaleVersion
from kb import access, schemas, versioning
from kb.access import Actor, Level
from kb.bundles import Entry, Note, refuse_repeated
from kb.models import KnowledgeBase
from kb.schemas import KnowledgeBaseDocument
from kb.schemas.diff import Change, diff
from kb.transfers import Outcome, check_models, create, named, settle, told, with_secrets

ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What an entry asks for. Without `target` it is a new knowledge base; `number` is the version that was compared."""

    entry: Entry
    document: KnowledgeBaseDocument
    notes: list[Note]
    target: KnowledgeBase | None
    number: int
    changes: list[Change]
    removed: list[versioning.Removal]


def apply_entries(
    actor: Actor,
    entries: Sequence[Entry],
    *,
    models: Mapping[str, str] | None = None,
    allow_removals: bool = False,
    dry_run: bool = False,
    comment: str = "",
) -> list[Outcome]:
    """Publish what differs. Every entry is checked before the first one is written; each is then a publication of its own.

    A knowledge base is found by the id of its entry, else by its name; its sources likewise. A source that the file does not have is
    removed with its documents, which takes `allow_removals`. Where the file names no embedding model, the one in use stays.
    """
    access.require(actor, Level.EDIT)
    refuse_repeated(entries)
    check_models(entries, models)
    plans = [_plan(actor, entry, models) for entry in entries]
    _refuse_same_target(plans)
    if dry_run:
        return [_outcome(actor, plan) for plan in plans]
    for plan in plans:
        _check_removals(plan, allow_removals)
    return [_carry_out(actor, plan, models, allow_removals=allow_removals, comment=comment) for plan in plans]


def _plan(actor: Actor, entry: Entry, models: Mapping[str, str] | None) -> Plan:
    target = _target(actor, entry)
    if target is None:
        document, notes = settle(actor, entry, models=models)
        return Plan(entry, schemas.without_source_ids(document), notes, None, 0, [], [])
    access.get_knowledge_base(actor, target.id, Level.EDIT)
    version = versioning.read(target)
    current = schemas.load_stored(version.document)
    document, notes = settle(actor, entry, models=models, model=current.embedding_model)
    known = {source.id for source in current.sources}
    document = document.model_copy(
        update={
            "sources": [source if source.id in known else source.model_copy(update={"id": None}) for source in document.sources],
        }
    )
    settled = told(entry, lambda: schemas.assign_source_ids(document, current))
    changes = [_shown(change, known) for change in diff(schemas.dump(current), schemas.dump(settled))]
    removed = versioning.find_removals(target, document=schemas.dump(document), expected=version.number)
    return Plan(entry, document, notes, target, version.number, changes, removed)


def _target(actor: Actor, entry: Entry) -> KnowledgeBase | None:
    if entry.id is not None:
        try:
            return access.get_knowledge_base(actor, entry.id)
        except NotFound:
            pass  # exported elsewhere: the name decides
    name = entry.document.get("name")
    return named(actor, name) if isinstance(name, str) else None


def _shown(change: Change, known: set[str | None]) -> Change:
    """Without the id that a new source would get: a dry run gives none."""
    new: Any = change.new
    if change.kind == "added" and isinstance(new, dict) and "id" in new and new["id"] not in known:
        new = {key: value for key, value in new.items() if key != "id"}
    return replace(change, new=new)


def _check_removals(plan: Plan, allowed: bool) -> None:
    if plan.removed and not allowed:
        shown = ", ".join(f"'{source.name}' with {source.documents:,} documents" for source in plan.removed)
        raise Conflict(
            f"{plan.entry.where} would remove from '{plan.document.name}': {shown}. Say --allow-removals if that is meant; a source "
            "that was renamed keeps its documents when the file says its id.",
            removed_sources=[source.name for source in plan.removed],
        )


def _refuse_same_target(plans: Sequence[Plan]) -> None:
    seen: dict[Any, str] = {}
    for plan in plans:
        keys = [plan.document.name.lower(), *([plan.target.id] if plan.target else [])]
        for key in keys:
            if key in seen:
                raise InvalidInput(f"{seen[key]} and {plan.entry.where} mean the same knowledge base, '{plan.document.name}'. Remove one.")
        seen |= dict.fromkeys(keys, plan.entry.where)


def _carry_out(actor: Actor, plan: Plan, models: Mapping[str, str] | None, *, allow_removals: bool, comment: str) -> Outcome:
    """Somebody else may publish, or make one of that name, after the look: then it is looked at again."""
    comment = comment or f"Applied from {plan.entry.where}"[:1000]
    for attempt in range(1, ATTEMPTS + 1):
        try:
            if plan.target is None:
                return create(actor, plan.entry, plan.document, notes=plan.notes, comment=comment)
            if not plan.changes:
                return _outcome(actor, plan)
            document = schemas.dump(plan.document)
            version = versioning.publish(plan.target, document=document, expected=plan.number, actor=actor, comment=comment)
            return replace(_outcome(actor, plan), version=version.number)
        except (Conflict, NotFound) as error:
            again = _plan(actor, plan.entry, models)
            unmoved = (again.target, again.number) == (plan.target, plan.number)
            if attempt == ATTEMPTS or (unmoved and not isinstance(error, StaleVersion)):
                raise  # a name that another knowledge base has
            _check_removals(again, allow_removals)
            plan = again
    raise AssertionError("the last attempt returns or raises")


def _outcome(actor: Actor, plan: Plan) -> Outcome:
    action: Any = "created" if plan.target is None else "published" if plan.changes else "unchanged"
    outcome = Outcome(
        action,
        plan.document.name,
        plan.entry.where,
        knowledge_base_id=plan.target.id if plan.target else None,
        version=plan.number + (action != "unchanged"),
        changes=plan.changes,
        removed_sources=plan.removed,
        notes=plan.notes,
    )
    return with_secrets(actor, outcome, plan.document)
