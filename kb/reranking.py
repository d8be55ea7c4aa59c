"""What is done to the registry of rerankers, and the one place where a reranker's credential is resolved."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from config import secrets
from config.errors import Conflict, NotFound
from kb import access, schemas, services
from kb.access import Actor
from kb.embedding_models import require_registrar
from kb.models import KnowledgeBase, Reranker
from kb.rerankers import RerankerSpec, check_reranker, load_reranker, rerank
from kb.versioning import rules

QUESTION = "When is the invoice due?"
PASSAGES = ("The invoice is due thirty days after delivery.", "The cat of the caretaker sleeps on the boiler.")
# A model that is loaded for the first time takes its time; a search would not wait for it.
_PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RerankerProbe:
    """What a reranker makes of a passage that answers and of one that does not."""

    relevant: float
    irrelevant: float
    milliseconds: float


def spec_of(reranker: Reranker, *, organization_id: UUID | None = None) -> RerankerSpec:
    """The reranker with its secret resolved. `organization_id` is whose secrets count for one of the whole installation."""
    owner = reranker.organization_id or organization_id

    def lookup(name: str) -> str:
        # An organization's own reranker may have an endpoint of its choice; the installation's secrets do not go there.
        return services.secret_value(owner, name, own_only=reranker.organization_id is not None)

    return RerankerSpec(
        name=reranker.name,
        provider=reranker.provider,
        model=reranker.model,
        endpoint=reranker.endpoint or None,
        credential=lookup(reranker.credential) if reranker.credential else None,
        parameters=secrets.resolve(reranker.parameters, lookup),
        timeout=reranker.timeout,
        trusted=reranker.organization_id is None,
    )


def get_reranker(actor: Actor, identifier: str | UUID, *, change: bool = False) -> Reranker:
    """One that the actor may use; with `change` one that it may administer: its organization's, an operator the installation's."""
    found = access.rerankers(actor).filter(id=access.parse_id(identifier)).first()
    if found is None:
        raise NotFound()
    if change:
        require_registrar(actor, installation=found.organization_id is None)
    return found


def register_reranker(actor: Actor, *, document: Mapping[str, Any], installation: bool = False) -> Reranker:
    """Register one. It is not called: see `probe_reranker`."""
    require_registrar(actor, installation=installation)
    reranker = Reranker(organization=None if installation else actor.organization)
    _fill(reranker, document)
    _save(reranker)
    return reranker


def change_reranker(reranker: Reranker, *, document: Mapping[str, Any]) -> Reranker:
    """Replace what is registered; another name only while no knowledge base calls it by the present one (`Conflict`)."""
    with transaction.atomic():
        locked = Reranker.objects.select_for_update(no_key=True, of=("self",)).filter(id=reranker.id).first()
        if locked is None:
            raise NotFound()
        before = locked.name
        _fill(locked, document)
        if locked.name != before:
            _refuse_used(locked, before)
        _save(locked)
    return locked


def delete_reranker(reranker: Reranker) -> None:
    """`Conflict` naming the knowledge bases that use it."""
    with transaction.atomic():
        _refuse_used(reranker, reranker.name)
        if not Reranker.objects.filter(id=reranker.id).delete()[0]:
            raise NotFound()


def users_of(reranker: Reranker, name: str = "") -> list[str]:
    """Knowledge bases whose current version calls it by its name, ten at most."""
    rows = KnowledgeBase.objects.filter(state=KnowledgeBase.State.ACTIVE, current__document__retrieval__rerank=name or reranker.name)
    if reranker.organization_id:
        rows = rows.filter(organization=reranker.organization_id)
    else:  # an organization's own of the same name comes first there
        own = Reranker.objects.filter(name=name or reranker.name, organization__isnull=False)
        rows = rows.exclude(organization__in=own.values("organization"))
    return list(rows.order_by("name").values_list("name", flat=True)[:10])


def probe_reranker(reranker: Reranker, *, organization_id: UUID) -> RerankerProbe:
    """Score two passages by the real provider. Errors are the provider's: a refused credential, no answer, no probability."""
    spec = spec_of(reranker, organization_id=organization_id)
    started = time.perf_counter()
    scores = rerank(load_reranker(spec), spec, QUESTION, PASSAGES, seconds=_PROBE_SECONDS)
    elapsed = (time.perf_counter() - started) * 1000
    return RerankerProbe(round(scores[0], 4), round(scores[1], 4), round(elapsed, 1))


def document_of(reranker: Reranker) -> dict[str, Any]:
    """What is registered, in the form of the document that registers it."""
    return {
        "name": reranker.name,
        "provider": reranker.provider,
        "model": reranker.model,
        "endpoint": reranker.endpoint or None,
        "credential": reranker.credential or None,
        "parameters": reranker.parameters,
        "timeout": reranker.timeout,
    }


def _fill(reranker: Reranker, document: Mapping[str, Any]) -> None:
    loaded = schemas.load_reranker(document, rules=replace(rules(), trusted=reranker.organization_id is None))
    for name, value in schemas.dump(loaded).items():
        setattr(reranker, name, value)
    reranker.endpoint, reranker.credential = loaded.endpoint or "", loaded.credential or ""
    check_reranker(spec_of(reranker))


def _save(reranker: Reranker) -> None:
    try:
        with transaction.atomic():
            reranker.save()
    except IntegrityError as error:
        if "reranker_name_once" not in str(error):
            raise
        raise Conflict(f"There is already a reranker named '{reranker.name}'. Choose another name.") from error


def _refuse_used(reranker: Reranker, name: str) -> None:
    users = users_of(reranker, name)
    if users:
        raise Conflict(f"The reranker {name} is used by {', '.join(users)}. Let them name another one first.", used_by=users)
