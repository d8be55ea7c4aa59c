"""Configurations in and out of an organization: export, and import as new knowledge bases. `kb.applying` changes those that are there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import Q, Value
from django.db.models.functions import Lower
from django.utils import timezone

from config.env import environment_secret
from config.errors import Conflict, InvalidInput, LecternError
from config.version import VERSION
from kb import access, schemas, services, versioning
from kb.access import Actor, Level
from kb.bundles import Entry, Export, Note, read_bundle, secret_names, slug, write_yaml, write_zip
from kb.models import KnowledgeBase, Secret
from kb.schemas import KnowledgeBaseDocument
from kb.schemas.base import clean_name
from kb.schemas.chunking import AUTO_TARGET
from kb.schemas.diff import Change, masked
from kb.stores.opening import usable_stores

T = TypeVar("T")
Action = Literal["created", "published", "unchanged"]
MEDIA_TYPES = {"yaml": "application/yaml", "zip": "application/zip"}
COST_FIELD = "cost_per_thousand_segments"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one knowledge base of a bundle, or in a dry run would. `missing_secrets` have to be stored before it works."""

    action: Action
    name: str
    where: str
    knowledge_base_id: UUID | None = None
    version: int | None = None
    changes: list[Change] = field(default_factory=list)
    removed_sources: list[versioning.Removal] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    missing_secrets: list[str] = field(default_factory=list)


def export(knowledge_base: KnowledgeBase, *, number: int | None = None) -> Export:
    """A version as it can be taken elsewhere. Secrets are references; one that an old version holds in clear is hidden."""
    version = versioning.read(knowledge_base, number)
    document = schemas.dump(schemas.load_stored(version.document))
    document["store"] = masked("", document["store"])
    return Export(knowledge_base.id, version.number, document)


def bundle_file(exports: Sequence[Export], *, form: str, name: str = "") -> tuple[str, bytes]:
    """File name and content of a bundle in the form `yaml` or `zip`."""
    stem = slug(name or (exports[0].name if len(exports) == 1 else "knowledge-bases"))
    if form == "zip":
        return f"{stem}.zip", write_zip(exports, exported_at=timezone.now(), product_version=VERSION)
    return f"{stem}.yaml", write_yaml(exports).encode()


def read_entries(data: bytes, *, name: str) -> tuple[list[Entry], list[Note]]:
    """The knowledge bases of a bundle; see `kb.bundles.read_bundle`."""
    return read_bundle(data, name=name, known_stores=usable_stores())


def import_entries(
    actor: Actor,
    entries: Sequence[Entry],
    *,
    name: str = "",
    rename: bool = False,
    models: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> list[Outcome]:
    """Make new knowledge bases, all or none; a dry run makes them and takes that back.

    They have new ids, and empty upload sources. `name` is for a single one. A name that is taken is a `Conflict`, or with `rename` becomes
    "Name (2)". `models` maps names of embedding models in the bundle to names here.
    """
    access.require(actor, Level.EDIT)
    if name and len(entries) != 1:
        raise InvalidInput(f"The bundle holds {len(entries)} knowledge bases, and name is for one. Leave it out, or say rename.")
    check_models(entries, models)
    settled = [settle(actor, entry, models=models) for entry in entries]
    if name:
        settled = [(_named(entry, document, name), notes) for entry, (document, notes) in zip(entries, settled, strict=True)]
    documents = _with_free_names(actor, [document for document, _ in settled], rename=rename)
    with transaction.atomic():
        outcomes = [
            create(actor, entry, document, notes=notes, comment=f"Imported from {entry.where}"[:1000])
            for entry, document, (_, notes) in zip(entries, documents, settled, strict=True)
        ]
        transaction.set_rollback(dry_run)
    return [replace(outcome, knowledge_base_id=None) for outcome in outcomes] if dry_run else outcomes


def create(actor: Actor, entry: Entry, document: KnowledgeBaseDocument, *, notes: list[Note], comment: str) -> Outcome:
    """Make the knowledge base of an entry, with ids of its own throughout."""
    values = schemas.dump(schemas.without_source_ids(document))
    made = told(entry, lambda: services.create_knowledge_base(actor, document=values, comment=comment))
    outcome = Outcome("created", made.name, entry.where, knowledge_base_id=made.id, version=1, notes=notes)
    return with_secrets(actor, outcome, document)


def settle(
    actor: Actor, entry: Entry, *, models: Mapping[str, str] | None = None, model: str | None = None
) -> tuple[KnowledgeBaseDocument, list[Note]]:
    """The document of an entry as it can be published here, validated as at every publication, and what was converted on the way.
    `model` is used where it names none."""
    document = told(entry, lambda: schemas.load(entry.document, rules=versioning.rules(actor.organization.pk)))
    notes = list(entry.notes)
    wanted = document.embedding_model or model
    known = _known_model(actor, wanted, models or {})
    try:
        row = versioning.registered_model(actor, known)
    except InvalidInput as error:
        hint = f" Register it, or map it to one of those: model {known}=NAME." if known else ""
        raise InvalidInput(f"{entry.where}: {error.message}{hint}") from None
    if document.embedding_model and row.name != document.embedding_model:
        notes.append(Note("embedding_model", "is called otherwise here.", old=document.embedding_model, new=row.name))
    document = document.model_copy(update={"embedding_model": row.name})
    document, converted = _without_costs(document, reads=row.max_input_tokens)
    return document, notes + converted


def with_secrets(actor: Actor, outcome: Outcome, document: KnowledgeBaseDocument) -> Outcome:
    names = secret_names(schemas.dump(document))
    rows = Secret.objects.filter(Q(organization=actor.organization) | Q(organization=None), name__in=names)
    stored = set(rows.values_list("name", flat=True))
    missing = [name for name in names if name not in stored and environment_secret(name) is None]
    return replace(outcome, secrets=names, missing_secrets=missing)


def named(actor: Actor, name: str) -> KnowledgeBase | None:
    """The knowledge base of the organization whose name this is, by the rule that keeps names apart."""
    try:
        name = clean_name(name)
    except ValueError:
        return None
    rows = access.knowledge_bases(actor).filter(hidden=False).annotate(lower_name=Lower("name"))
    return rows.select_related("current", "organization").filter(lower_name=Lower(Value(name))).first()


def _known_model(actor: Actor, wanted: str | None, models: Mapping[str, str]) -> str | None:
    if wanted is None or wanted in models:
        return models[wanted] if wanted else None
    rows = access.embedding_models(actor)
    provider, slash, model = wanted.partition("/")
    if slash and not rows.filter(name=wanted).exists():  # `openai/text-embedding-3-small` says what it is, and not what it is called
        found = rows.filter(provider=provider, model=model).order_by("organization_id").first()
        return found.name if found else wanted
    return wanted


def check_models(entries: Sequence[Entry], models: Mapping[str, str] | None) -> None:
    used = {entry.document.get("embedding_model") for entry in entries}
    if unused := sorted(set(models or {}) - {name for name in used if isinstance(name, str)}):
        shown = ", ".join(sorted(f"'{name}'" for name in used if isinstance(name, str))) or "no model by name"
        raise InvalidInput(f"No knowledge base of the bundle names the embedding model '{unused[0]}'. The bundle names {shown}.")


def _without_costs(document: KnowledgeBaseDocument, *, reads: int) -> tuple[KnowledgeBaseDocument, list[Note]]:
    """A price a segment says nothing about a run whose chunks have other sizes: the price belongs to the model, by tokens."""
    target = document.chunking.target_tokens
    tokens = min(AUTO_TARGET if target == "auto" else target, reads)
    sources, notes = [], []
    for source in document.sources:
        cost = source.settings.cost_per_thousand_segments
        if cost is not None:
            price = round(cost * 1000 / tokens, 6)
            message = (
                f"was left out: costs are counted in tokens. At {tokens} tokens a segment it is {price:g} per million tokens; "
                f"an operator sets price_per_million_tokens of the embedding model {document.embedding_model}."
            )
            notes.append(Note(f"sources[{source.name}].settings.{COST_FIELD}", message, old=cost))
            source = source.model_copy(update={"settings": source.settings.model_copy(update={COST_FIELD: None})})
        sources.append(source)
    return document.model_copy(update={"sources": sources}), notes


def _with_free_names(actor: Actor, documents: list[KnowledgeBaseDocument], *, rename: bool) -> list[KnowledgeBaseDocument]:
    rows = KnowledgeBase.objects.filter(organization=actor.organization, state=KnowledgeBase.State.ACTIVE)
    used = {name.lower() for name in rows.values_list("name", flat=True)}
    taken, free = [], []
    for document in documents:
        name, count = document.name, 1
        while name.lower() in used:
            count += 1
            name = f"{document.name[:190]} ({count})"
        if name != document.name:
            taken.append(document.name)
        used.add(name.lower())
        free.append(document.model_copy(update={"name": name}))
    if taken and not rename:
        shown = ", ".join(f"'{name}'" for name in taken)
        raise Conflict(f"The name is taken already: {shown}. Say another name, say rename, or apply the file to change it.", names=taken)
    return free


def _named(entry: Entry, document: KnowledgeBaseDocument, name: str) -> KnowledgeBaseDocument:
    return told(entry, lambda: schemas.load(schemas.dump(document) | {"name": name}, rules=versioning.rules()))


def told(entry: Entry, action: Callable[[], T]) -> T:
    """A refusal says which part of the bundle it is about."""
    try:
        return action()
    except LecternError as error:
        error.message = f"{entry.where}: {error.message}"
        raise
