"""A request made definite: which knowledge bases, each under which settings."""

from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Q

from config.errors import NotFound
from kb import access, schemas
from kb.access import Actor
from kb.models import KnowledgeBase
from kb.schemas.retrieval_settings import MinScore, RetrievalSettings
from retrieval.filters import compile_filter
from retrieval.requests import MinScores, Mode, SearchRequest

MAX_HITS = 100
_SETTINGS_KEPT = 1024
_settings: dict[UUID, RetrievalSettings] = {}


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


@dataclass(frozen=True, slots=True)
class Query:
    """`limit` is the most hits of the whole answer, `filters` a condition on documents. `readable` is what keeps private documents of
    others back, on documents and on chunks; `hides`: there are such, so that they must not stand among the candidates either."""

    text: str
    organization: UUID
    targets: tuple[Target, ...]
    limit: int
    filters: Q | None = None
    readable: Q = field(default_factory=Q)
    readable_chunks: Q = field(default_factory=Q)
    hides: bool = False
    rerank: str | None = None
    explain: bool = False
    request: SearchRequest | None = None

    @property
    def mode(self) -> str:
        """For lists of traces; knowledge bases that differ are `mixed`."""
        modes = {target.mode for target in self.targets}
        if len(modes) > 1:
            return "mixed"
        return modes.pop() if modes else (self.request.mode or "" if self.request else "")


def make_query(actor: Actor, request: SearchRequest) -> Query:
    """`NotFound` for a knowledge base that is absent or foreign, `InvalidInput` for a filter that cannot be asked."""
    filters = compile_filter(request.filters) if request.filters is not None else None
    targets = tuple(_target(row, request) for row in _knowledge_bases(actor, request.knowledge_bases))
    readable = access.readable(actor)
    hides = access.hidden_documents(actor, [target.id for target in targets]).exists()
    if hides:
        filters = readable if filters is None else filters & readable
    own = sum(target.max_results for target in targets)
    return Query(
        text=request.query,
        organization=actor.organization.pk,
        targets=targets,
        limit=request.max_results or min(own, MAX_HITS),
        filters=filters,
        readable=readable,
        readable_chunks=access.readable(actor, "document__"),
        hides=hides,
        rerank=request.rerank,
        explain=request.explain,
        request=request,
    )


def _knowledge_bases(actor: Actor, named: list[str] | None) -> list[KnowledgeBase]:
    rows = access.knowledge_bases(actor).select_related("current").filter(current__isnull=False)
    if named is None:
        # Those of agents are searched by name only.
        return list(rows.filter(hidden=False).order_by("id"))
    wanted = set(access.ids(named))
    found = list(rows.filter(id__in=wanted).order_by("id"))
    if len(found) != len(wanted):
        raise NotFound()
    return found


def _target(row: KnowledgeBase, request: SearchRequest) -> Target:
    own = _settings_of(row)
    mode: Mode = request.mode or own.mode
    return Target(
        id=row.id,
        name=row.name,
        version=row.current.number,
        mode=mode,
        max_results=request.max_results or own.max_results,
        min_score=_thresholds(own.min_score, request.min_score, mode),
        neighbours=own.neighbours if request.neighbours is None else request.neighbours,
    )


def _settings_of(row: KnowledgeBase) -> RetrievalSettings:
    """Kept by version, because a version never changes and reading a document with many sources takes longer than a search."""
    found = _settings.get(row.current_id)
    if found is None:
        if len(_settings) >= _SETTINGS_KEPT:
            _settings.clear()
        found = _settings[row.current_id] = schemas.load_stored(row.current.document).retrieval
    return found


def _thresholds(own: MinScore, asked: float | MinScores | None, mode: Mode) -> Thresholds:
    values = {"vector": own.vector, "keyword": own.keyword, "reranked": own.reranked}
    if isinstance(asked, MinScores):
        values |= {name: value for name, value in asked.model_dump().items() if value is not None}
    elif asked is not None:
        values["keyword" if mode == "keyword" else "vector"] = asked
    return Thresholds(**values)
