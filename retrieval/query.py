"""A request made definite: which knowledge bases, each under which settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from django.db.models import F, Q

from config.errors import InvalidInput, NotFound
from kb import access, schemas
from kb.access import Actor
from kb.models import Document, EmbeddingSpace, KnowledgeBase, Reranker
from kb.schemas.retrieval_settings import Fusion, MinScore, RetrievalSettings
from kb.stores.contents import holds_private
from retrieval.filters import compile_filter
from retrieval.fusion import Weights
from retrieval.metadata import NO_TYPES, MetadataTypes, merge_types
from retrieval.requests import FusionWeights, MinScores, Mode, SearchRequest

T = TypeVar("T")

MAX_HITS = 100
# Candidates among which variety is looked for.
MOST_DIVERSE = 100
_SETTINGS_KEPT = 1024
_settings: dict[UUID, "Settings"] = {}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a version of a knowledge base says of searching it; `metadata` are declared types by key."""

    retrieval: RetrievalSettings
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Lowest scores, by name."""

    vector: float
    keyword: float
    reranked: float


@dataclass(frozen=True, slots=True)
class Target:
    """One knowledge base to search, and how: its own settings, or the request's where that says something."""

    id: UUID
    name: str
    version: int
    mode: Mode
    max_results: int
    min_score: Thresholds
    neighbours: int
    rerank: str | None
    rerank_depth: int
    diversity: float
    max_per_document: int
    collapse_duplicates: bool
    weights: Weights
    ef_search: int | None
    space: EmbeddingSpace | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """`limit` is the most hits of the whole answer, `pool` how many candidates are read before one is chosen (0: as they come), `filters`
    a condition on documents, which `types` compared metadata by. `rerankers` are those that targets name, by name. `readable` is what keeps
    private documents of others back, on documents and on chunks; `hides`: there are such, so that they must not stand among the candidates
    either. `asked_about` are documents that somebody expected, None for what the actor cannot see."""

    text: str
    organization: UUID
    targets: tuple[Target, ...]
    limit: int
    filters: Q | None = None
    types: MetadataTypes = NO_TYPES
    readable: Q = field(default_factory=Q)
    readable_chunks: Q = field(default_factory=Q)
    hides: bool = False
    pool: int = 0
    rerankers: Mapping[str, Reranker] = field(default_factory=dict)
    explain: bool = False
    asked_about: Mapping[UUID, Document | None] = field(default_factory=dict)
    request: SearchRequest | None = None

    @property
    def reranks(self) -> bool:
        return any(target.rerank is not None for target in self.targets)

    @property
    def mode(self) -> str:
        """For lists of traces; knowledge bases that differ are `mixed`."""
        modes = {target.mode for target in self.targets}
        if len(modes) > 1:
            return "mixed"
        return modes.pop() if modes else (self.request.mode or "" if self.request else "")


def make_query(actor: Actor, request: SearchRequest) -> Query:
    """`NotFound` for a knowledge base that is absent or foreign, `InvalidInput` for a filter that cannot be asked."""
    rows = _knowledge_bases(actor, request.knowledge_bases)
    targets = tuple(_target(row, request) for row in rows)
    types = merge_types(_settings_of(row).metadata for row in rows)
    filters = compile_filter(request.filters, types=types) if request.filters is not None else None
    readable = access.readable(actor)
    ids = [target.id for target in targets]
    hides = holds_private(ids) and access.hidden_documents(actor, ids).exists()
    if hides:
        filters = readable if filters is None else filters & readable
    limit = request.max_results or min(sum(target.max_results for target in targets), MAX_HITS)
    return Query(
        text=request.query,
        organization=actor.organization.pk,
        targets=targets,
        limit=limit,
        filters=filters,
        types=types,
        readable=readable,
        readable_chunks=access.readable(actor, "document__"),
        hides=hides,
        pool=_pool(targets, limit),
        rerankers=_rerankers(actor, targets, asked=request.rerank),
        explain=request.explain or bool(request.explain_documents),
        asked_about=_asked_about(actor, request.explain_documents),
        request=request,
    )


def _asked_about(actor: Actor, named: Sequence[str]) -> dict[UUID, Document | None]:
    """Documents that somebody expected; None for what is not there or not for the actor's eyes. What is no id is `NotFound`."""
    wanted = access.ids(named)
    rows = access.rows(actor, Document).select_related("source", "knowledge_base") if wanted else Document.objects.none()
    seen = {row.id: row for row in rows.filter(id__in=wanted)}
    return {identifier: seen.get(identifier) for identifier in wanted}


def _knowledge_bases(actor: Actor, named: list[str] | None) -> list[KnowledgeBase]:
    # Without the documents of versions, which may be long: those that were read are kept (_settings_of).
    rows = access.knowledge_bases(actor).select_related("current", "space__embedding_model").filter(current__isnull=False)
    rows = rows.defer("description", "current__document", "current__comment")
    if named is None:
        # Those of agents are searched by name only.
        return list(rows.filter(hidden=False).order_by("id"))
    wanted = set(access.ids(named))
    found = list(rows.filter(id__in=wanted).order_by("id"))
    if len(found) != len(wanted):
        raise NotFound()
    return found


def _pool(targets: tuple[Target, ...], limit: int) -> int:
    depths = [target.rerank_depth for target in targets if target.rerank is not None]
    depths += [MOST_DIVERSE for target in targets if target.diversity]
    return max(limit, *depths) if depths else 0


def _rerankers(actor: Actor, targets: tuple[Target, ...], *, asked: str | None) -> dict[str, Reranker]:
    """An organization's own before the installation's of the same name. A knowledge base may name one that is gone; a request may not."""
    names = {target.rerank for target in targets if target.rerank is not None} | ({asked} if asked is not None else set())
    if not names:
        return {}
    known = access.rerankers(actor)
    rows = {row.name: row for row in known.filter(name__in=names).order_by(F("organization").desc(nulls_first=True))}
    if asked is not None and asked not in rows:
        registered = ", ".join(sorted(known.values_list("name", flat=True))) or "none"
        message = f"There is no reranker {asked!r}. Registered: {registered}."
        raise InvalidInput(message, errors=[{"path": "rerank", "message": message}])
    return rows


def _target(row: KnowledgeBase, request: SearchRequest) -> Target:
    own = _settings_of(row).retrieval
    mode: Mode = request.mode or own.mode
    return Target(
        id=row.id,
        name=row.name,
        version=row.current.number,
        mode=mode,
        max_results=request.max_results or own.max_results,
        min_score=_thresholds(own.min_score, request.min_score, mode),
        neighbours=_asked(request.neighbours, own.neighbours),
        rerank=request.rerank if "rerank" in request.model_fields_set else own.rerank,
        rerank_depth=_asked(request.rerank_depth, own.rerank_depth),
        diversity=_asked(request.diversity, own.diversity),
        max_per_document=_asked(request.max_per_document, own.max_per_document),
        collapse_duplicates=_asked(request.collapse_duplicates, own.collapse_duplicates),
        weights=_weights(own.fusion, request.fusion),
        ef_search=_asked(request.ef_search, own.ef_search),
        space=row.space,
    )


def _asked(asked: T | None, own: T) -> T:
    return own if asked is None else asked


def _weights(own: Fusion, asked: FusionWeights | None) -> Weights:
    asked = asked or FusionWeights()
    return Weights(keyword=_asked(asked.keyword_weight, own.keyword_weight), floor=_asked(asked.vector_floor, own.vector_floor))


def _settings_of(row: KnowledgeBase) -> Settings:
    """Kept by version, because a version never changes and reading a document with many sources takes longer than a search."""
    found = _settings.get(row.current_id)
    if found is None:
        if len(_settings) >= _SETTINGS_KEPT:
            _settings.clear()
        document = schemas.load_stored(row.current.document)
        found = _settings[row.current_id] = Settings(document.retrieval, {key: rule.type for key, rule in document.metadata.items()})
    return found


def _thresholds(own: MinScore, asked: float | MinScores | None, mode: Mode) -> Thresholds:
    values = {"vector": own.vector, "keyword": own.keyword, "reranked": own.reranked}
    if isinstance(asked, MinScores):
        values |= {name: value for name, value in asked.model_dump().items() if value is not None}
    elif asked is not None:
        values["keyword" if mode == "keyword" else "vector"] = asked
    return Thresholds(**values)
