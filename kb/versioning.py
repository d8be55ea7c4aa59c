"""The one writer of versioned configuration."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from config.errors import Conflict, InvalidInput, NotFound, StaleVersion
from config.registry import Registry
from kb import schemas, space_changes, vector_stores
from kb.access import Actor, embedding_models
from kb.models import Document, EmbeddingModel, KnowledgeBase, KnowledgeBaseVersion, Reranker, Source
from kb.providers.tokens import known_tokenizers
from kb.schemas.diff import Change, diff
from kb.signals import version_published
from kb.stores.opening import missing_stores, usable_stores


def rules(organization_id: UUID | None = None) -> schemas.Rules:
    """What this installation knows and allows, for the validation of a document that is about to be published, in an organization where
    it may name what is registered there."""
    named = Reranker.objects.filter(Q(organization=organization_id) | Q(organization=None)) if organization_id else None
    return schemas.Rules(
        known_stores=usable_stores(),
        missing_stores=missing_stores(),
        known_providers=frozenset(Registry("embedding provider", settings.EMBEDDING_PROVIDERS).names()),
        min_interval_seconds=settings.ENV.min_schedule_interval,
        known_rerankers=None if named is None else frozenset(named.values_list("name", flat=True)),
        known_tokenizers=known_tokenizers(),
        allowed_networks=settings.ENV.allowed_private_networks,
    )


def publish(
    knowledge_base: KnowledgeBase, *, document: dict, expected: int | None, actor: Actor, comment: str = ""
) -> KnowledgeBaseVersion:
    """Publish `document` as the next version and make it current.

    `expected` is the number the author edited (None only for the first version). Raises `InvalidInput` for a document
    that does not hold, `StaleVersion` if another version was published meanwhile, `Conflict` for a name that is taken.
    """
    with transaction.atomic():
        locked = KnowledgeBase.objects.select_for_update(no_key=True).filter(id=knowledge_base.id, state=KnowledgeBase.State.ACTIVE).first()
        if locked is None:
            raise NotFound()
        previous = KnowledgeBaseVersion.objects.filter(id=locked.current_id).first()
        loaded = _load(document, organization=locked.organization_id, previous=previous, expected=expected)
        model = registered_model(actor, loaded.embedding_model)
        loaded = loaded.model_copy(update={"embedding_model": model.name})
        version = KnowledgeBaseVersion.objects.create(
            organization_id=locked.organization_id,
            knowledge_base=locked,
            number=previous.number + 1 if previous else 1,
            document=schemas.dump(loaded),
            comment=comment,
            author=actor.user,
            author_name=actor.name,
        )
        model_before = locked.named_space_id or locked.space_id
        locked.name, locked.description, locked.visibility = loaded.name, loaded.description, loaded.visibility
        locked.current = version
        space_changes.follow_model(locked, version=version, space=model.space)
        try:
            with transaction.atomic():
                locked.save(update_fields=["name", "description", "visibility", "current", "space", "named_space"])
        except IntegrityError as error:
            if "knowledge_base_name_once" not in str(error):
                raise
            raise Conflict(f"There is already a knowledge base named '{loaded.name}'. Choose another name.") from error
        removed, retyped = _sync_sources(locked, loaded)
        version_published.send(
            KnowledgeBase,
            knowledge_base=locked,
            version=version,
            previous=previous,
            removed_sources=removed,
            retyped_sources=retyped,
        )
        # Last: what was published until here is seen.
        vector_stores.follow_store(locked, before=previous, now=loaded.store, model_changes=model_before != model.space.pk)
    knowledge_base.refresh_from_db()
    return version


def _load(
    document: dict, *, organization: UUID, previous: KnowledgeBaseVersion | None, expected: int | None
) -> schemas.KnowledgeBaseDocument:
    """The document, valid and with the ids of its sources, if `previous` is what its author edited."""
    if previous is not None and expected != previous.number:
        raise StaleVersion(expected=expected or 0, current=previous.number)
    loaded = schemas.load(document, rules=rules(organization))
    return schemas.assign_source_ids(loaded, previous=schemas.load_stored(previous.document) if previous else None)


@dataclass(frozen=True, slots=True)
class Removal:
    """A source that a version drops or gives another type, and what goes with it."""

    id: UUID
    name: str
    documents: int
    chunks: int
    files: int


def find_removals(knowledge_base: KnowledgeBase, *, document: dict, expected: int) -> list[Removal]:
    """What publishing `document` would take away. Raises what publishing it would raise for the document itself."""
    loaded = _load(document, organization=knowledge_base.organization_id, previous=read(knowledge_base), expected=expected)
    types = {UUID(entry.id): entry.type for entry in loaded.sources}
    leaving = [source for source in _configured(knowledge_base) if types.get(source.id) != source.kind]
    return [Removal(source.id, source.name, **_held(source)) for source in leaving]


def _held(source: Source) -> dict[str, int]:
    documents = Document.objects.filter(source=source, tombstoned_at=None)
    return documents.aggregate(documents=Count("id"), chunks=Coalesce(Sum("chunk_count"), 0), files=Count("file_id", distinct=True))


def registered_model(actor: Actor, name: str | None) -> EmbeddingModel:
    """The model that a document names, else the organization's default, else the installation's."""
    known = embedding_models(actor).select_related("space")
    if name is None:
        found = known.filter(is_default=True).order_by("organization_id").first()  # nulls (the installation's) sort last
        if found is None:
            raise InvalidInput("embedding_model is not set and there is no default. Name one of the registered embedding models.")
        return found
    found = known.filter(name=name).order_by("organization_id").first()
    if found is None:
        names = ", ".join(sorted(known.values_list("name", flat=True))) or "none"
        raise InvalidInput(f"embedding_model: there is no registered model '{name}'. Registered: {names}.")
    return found


def _configured(knowledge_base: KnowledgeBase) -> QuerySet[Source]:
    """The sources that mirror `sources[]`; those that are made by us are not in it."""
    kinds = (Source.Kind.WEB, Source.Kind.UPLOAD)
    return Source.objects.filter(knowledge_base=knowledge_base, kind__in=kinds, state=Source.State.ACTIVE)


def _sync_sources(knowledge_base: KnowledgeBase, document: schemas.KnowledgeBaseDocument) -> tuple[list[Source], dict[Source, Source]]:
    """Make the rows of web and upload sources mirror the document. Returns those that left, now in state `removing`, and those that got
    another type, each with a row in that state that takes over what it had."""
    wanted = {UUID(entry.id): entry for entry in document.sources}
    existing = {source.id: source for source in _configured(knowledge_base)}
    owner = {"organization_id": knowledge_base.organization_id, "knowledge_base": knowledge_base}
    new, retyped = [], {}
    for identifier, entry in wanted.items():
        values = {"name": entry.name, "enabled": entry.enabled, "kind": entry.type}
        source = existing.get(identifier)
        if source is None:
            new.append(Source(id=identifier, **owner, **values))
        elif any(getattr(source, name) != value for name, value in values.items()):
            # Not `FOR UPDATE`: a run that inserts documents of the source would wait for us, and we for the run.
            Source.objects.filter(id=identifier).update(**values)
            if source.kind != entry.type:
                retyped[source] = Source.objects.create(**owner, name=source.name, kind=source.kind, state=Source.State.REMOVING)
    Source.objects.bulk_create(new)
    removed = [source for identifier, source in existing.items() if identifier not in wanted]
    Source.objects.filter(id__in=[source.id for source in removed]).update(state=Source.State.REMOVING)
    return removed, retyped


def read(knowledge_base: KnowledgeBase, number: int | None = None) -> KnowledgeBaseVersion:
    """A version by number, the current one without; `NotFound` if there is none."""
    versions = KnowledgeBaseVersion.objects.filter(knowledge_base=knowledge_base)
    found = versions.filter(id=knowledge_base.current_id) if number is None else versions.filter(number=number)
    version = found.first()
    if version is None:
        raise NotFound(f"This knowledge base has no version {number}." if number is not None else "This knowledge base has no version yet.")
    return version


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from version `old` to version `new`."""

    old: int
    new: int
    changes: list[Change]


def compare(knowledge_base: KnowledgeBase, *, old: int | None = None, new: int | None = None) -> Comparison:
    """Two versions of a knowledge base; the current one and the one before it, where they are not named."""
    later = read(knowledge_base, new)
    earlier = read(knowledge_base, max(1, later.number - 1) if old is None else old)
    documents = [schemas.dump(schemas.load_stored(version.document)) for version in (earlier, later)]
    return Comparison(earlier.number, later.number, diff(*documents))


def restored(knowledge_base: KnowledgeBase, number: int) -> dict:
    """The document of an old version as it can be published now: sources that the current one dropped get new ids, and come back empty."""
    old = schemas.load_stored(read(knowledge_base, number).document)
    current = schemas.load_stored(read(knowledge_base).document)
    known = {source.id for source in current.sources}
    sources = [source if source.id in known else source.model_copy(update={"id": None}) for source in old.sources]
    return schemas.dump(old.model_copy(update={"sources": sources}))


def roll_back(knowledge_base: KnowledgeBase, *, to: int, expected: int, actor: Actor, comment: str = "") -> KnowledgeBaseVersion:
    """Publish an old document again, as a new version."""
    document = restored(knowledge_base, to)
    return publish(knowledge_base, document=document, expected=expected, actor=actor, comment=comment or f"Rolled back to version {to}")
