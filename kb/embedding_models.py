"""What is done to the registry of embedding models. A registered model has a space; what changes its vectors makes it another model."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError, Q

from config import queues
from config.errors import Conflict, NotFound
from kb import access, schemas
from kb.access import Actor, Level
from kb.embedding import ensure_space, model_fingerprint, provider_of, spec_of
from kb.models import Document, EmbeddingModel, EmbeddingSpace, KnowledgeBase, SpaceChange
from kb.providers import Role, check_spec, document_text, embed
from kb.versioning import rules

SENTENCES = ("The invoice is due thirty days after delivery.", "Payment has to arrive within a month of receiving the goods.")


@dataclass(frozen=True, slots=True)
class Probe:
    """What a model answered to two sentences that mean nearly the same."""

    dimension: int
    tokens: int
    milliseconds: float
    similarity: float


def get_model(actor: Actor, identifier: str | UUID, *, change: bool = False) -> EmbeddingModel:
    """A model that the actor may use; with `change` one that it may administer: its organization's, an operator the installation's."""
    found = access.embedding_models(actor).select_related("space").filter(id=access.parse_id(identifier)).first()
    if found is None:
        raise NotFound()
    if change:
        require_registrar(actor, installation=found.organization_id is None)
    return found


def require_registrar(actor: Actor, *, installation: bool) -> None:
    if installation:
        access.require_operator(actor)
    else:
        access.require(actor, Level.ADMIN)


def register_model(actor: Actor, *, document: Mapping[str, Any], installation: bool = False) -> EmbeddingModel:
    """Register a model and make its space; a worker attaches the space's partition. The model itself is not called: see `probe_model`."""
    require_registrar(actor, installation=installation)
    model = EmbeddingModel(organization=None if installation else actor.organization)
    _fill(model, document)
    with transaction.atomic():
        _save(model)
        _provision(ensure_space(model))
    return model


def change_model(model: EmbeddingModel, *, document: Mapping[str, Any]) -> EmbeddingModel:
    """Replace what is registered. Name, endpoint, credential, price and limits may always change; what changes vectors only while
    nothing uses the model (`Conflict` otherwise)."""
    with transaction.atomic():
        locked = EmbeddingModel.objects.select_for_update(no_key=True, of=("self",)).filter(id=model.id).first()
        if locked is None:
            raise NotFound()
        before = (model_fingerprint(locked), locked.dimension)
        _fill(locked, document)
        remade = before != (model_fingerprint(locked), locked.dimension)
        if remade:
            users = users_of(locked)
            if users:
                raise Conflict(
                    f"The model {locked.name} is used by {', '.join(users)}, and this change would give other vectors than those stored. "
                    "Register another model, and let the knowledge bases name that one.",
                    used_by=users,
                )
            _remove_space(locked)
        _save(locked)
        if remade:
            _provision(ensure_space(locked))
    return locked


def delete_model(model: EmbeddingModel) -> None:
    """`Conflict` naming the knowledge bases while one uses the model or has vectors of it."""
    with transaction.atomic():
        locked = EmbeddingModel.objects.select_for_update(no_key=True, of=("self",)).filter(id=model.id).first()
        if locked is None:
            raise NotFound()
        users = users_of(locked)
        if users:
            said = f"The model {locked.name} is used by {', '.join(users)}. Give them another embedding model first."
            raise Conflict(said, used_by=users)
        _remove_space(locked)
        locked.delete()


def users_of(model: EmbeddingModel) -> list[str]:
    """What uses the space of a model: knowledge bases by name, else the vectors that are left of one."""
    space = EmbeddingSpace.objects.filter(embedding_model=model).first()
    if space is None:
        return []
    ways = SpaceChange.objects.filter(Q(from_space=space) | Q(to_space=space), state__in=SpaceChange.LIVE).values("knowledge_base")
    names = KnowledgeBase.objects.filter(Q(space=space) | Q(named_space=space) | Q(id__in=ways)).order_by("name")
    if found := list(names.values_list("name", flat=True)[:10]):
        return found
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM embedding_use WHERE space = %s)", [space.pk])
        left = cursor.fetchone()[0]
    return ["vectors of a knowledge base that left it"] if left or Document.objects.filter(space=space).exists() else []


def probe_model(model: EmbeddingModel, *, organization_id: UUID) -> Probe:
    """Embed two sentences by the real provider. Errors are the provider's: another dimension, a refused credential, no answer."""
    spec, provider = provider_of(model, organization_id=organization_id, threads=1)
    started = time.perf_counter()
    answer = embed(provider, spec, [document_text(spec, sentence) for sentence in SENTENCES], Role.DOCUMENT)
    elapsed = (time.perf_counter() - started) * 1000
    similarity = float(answer.vectors[0] @ answer.vectors[1])
    return Probe(dimension=answer.vectors.shape[1], tokens=answer.tokens, milliseconds=round(elapsed, 1), similarity=round(similarity, 4))


def document_of(model: EmbeddingModel) -> dict[str, Any]:
    """What is registered, in the form of the document that registers it."""
    price = model.price_per_million_tokens
    return {
        "name": model.name,
        "provider": model.provider,
        "model": model.model,
        "dimension": model.dimension,
        "max_input_tokens": model.max_input_tokens,
        "endpoint": model.endpoint or None,
        "credential": model.credential or None,
        "parameters": model.parameters,
        "query_prefix": model.query_prefix,
        "document_prefix": model.document_prefix,
        "is_default": model.is_default,
        "vector_index": model.vector_index,
        "price_per_million_tokens": None if price is None else float(price),
    }


def _fill(model: EmbeddingModel, document: Mapping[str, Any]) -> None:
    """Validate as what this registrar may write, and let the provider look at the settings."""
    loaded = schemas.load_embedding_model(document, rules=replace(rules(), trusted=model.organization_id is None))
    for name, value in schemas.dump(loaded).items():
        setattr(model, name, value)
    model.endpoint, model.credential = loaded.endpoint or "", loaded.credential or ""
    price = loaded.price_per_million_tokens
    model.price_per_million_tokens = None if price is None else Decimal(str(price))
    check_spec(spec_of(model))


def _save(model: EmbeddingModel) -> None:
    if model.is_default:  # the flag moves: two defaults cannot stand beside each other
        EmbeddingModel.objects.filter(organization=model.organization_id, is_default=True).exclude(id=model.id).update(is_default=False)
    try:
        with transaction.atomic():
            model.save()
    except IntegrityError as error:
        if "embedding_model_name_once" not in str(error):
            raise
        raise Conflict(f"There is already an embedding model named '{model.name}'. Choose another name.") from error


def _remove_space(model: EmbeddingModel) -> None:
    try:
        EmbeddingSpace.objects.filter(embedding_model=model).delete()
    except ProtectedError as error:
        raise Conflict(f"The model {model.name} is still used. Give its knowledge bases another embedding model first.") from error


def _provision(space: EmbeddingSpace) -> None:
    transaction.on_commit(partial(queues.nudge, "ingestion.provision", space.pk))  # the sweep attaches what has no partition yet
