"""What a run would do, without doing it: nothing is written, and time and documents are bounded."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from threading import BoundedSemaphore

from django.conf import settings

from config.errors import Conflict, TooManyRequests
from config.registry import Registry
from ingestion.counters import shown_cost
from ingestion.findings import finding
from ingestion.models import EmbeddedText, IngestionRun, RunItem
from ingestion.plan import plan_for
from ingestion.reading import Reading, text_hash
from ingestion.reconcile import Action, what_was_seen
from ingestion.services.crawls import Crawl, crawl_of_look
from ingestion.sources.base import Look
from ingestion.sources.web.preview import SiteLook
from ingestion.sources.web.state import SiteState
from ingestion.stages.finish import conclude
from kb.models import Document, KnowledgeBase, Source

MAX_SECONDS = 100.0
MAX_DOCUMENTS = 500
MAX_SKIPPED = 200
AT_ONCE = 3
RETRY_SECONDS = 30
DISABLED = "The source is disabled: no run does this before it is enabled. A preview is how one looks at it before that."
_running = BoundedSemaphore(AT_ONCE)
Stage, Verdict = RunItem.Stage, RunItem.Verdict


class Change(StrEnum):
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    FAILED = "failed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Previewed:
    """One document, `None` while there is no row of it; `tokens` are those of chunks whose vectors are not paid yet."""

    document: Document | None
    name: str
    title: str
    change: Change
    chunks: int = 0
    embeddings: int = 0
    tokens: int = 0
    reason: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """Unchanged documents are only counted. When a bound ended it, `stopped` says so, and nothing is called gone."""

    documents: list[Previewed]
    counts: dict[str, int]
    chunks: int
    embeddings: int
    tokens: int
    cost: str | None
    stopped: str
    seconds: float
    warnings: tuple[str, ...]
    reasons: dict[str, int]
    skipped: list[RunItem]
    crawl: Crawl | None

    @property
    def complete(self) -> bool:
        return not self.stopped


def preview_source(source: Source, *, max_seconds: float = MAX_SECONDS, max_documents: int = MAX_DOCUMENTS) -> Preview:
    """Look at what the source has now and compare. `TooManyRequests` while three others are at it in this process."""
    if source.kind not in settings.PREVIEWS:
        raise Conflict(f"A source of kind {source.kind} has nothing that lists its documents; there is nothing to preview.")
    with _place():
        return _preview(source, time.monotonic(), max_seconds, max_documents)


@contextmanager
def _place() -> Iterator[None]:
    if not _running.acquire(blocking=False):
        raise TooManyRequests(f"{AT_ONCE} previews are under way here. Try again in {RETRY_SECONDS} seconds.", retry_after=RETRY_SECONDS)
    try:
        yield
    finally:
        _running.release()


def _preview(source: Source, started: float, max_seconds: float, max_documents: int) -> Preview:
    knowledge_base = KnowledgeBase.objects.select_related("current", "space__embedding_model").get(id=source.knowledge_base_id)
    run = IngestionRun(  # never saved: it carries the version and the space that a run would have
        organization_id=source.organization_id,
        knowledge_base=knowledge_base,
        source=source,
        version=knowledge_base.current,
        space=knowledge_base.space,
    )
    plan = plan_for(run)
    look = Registry("preview", settings.PREVIEWS).load(source.kind)(run, plan, until=started + max_seconds, most=max_documents)
    estimate = _Estimate(run)
    rows = [estimate.count(reading) for reading in look.read()]
    rows += [_failed(item) for item in look.items if item.verdict == Verdict.FAILED]
    gone, warnings = ([], ()) if look.stopped else _gone(run, look)
    rows += gone[:max_documents]
    verdicts = Counter(item.verdict for item in look.items)
    number = Counter(row.change for row in rows) + Counter({Change.UNCHANGED: verdicts[Verdict.UNCHANGED]})
    number[Change.GONE] = len(gone)
    told = {row.name for row in gone}
    skipped = [item for item in look.items if item.verdict == Verdict.SKIPPED and item.key not in told]
    crawl = crawl_of_look(look)
    return Preview(
        documents=rows,
        counts={change.value: number[change] for change in Change},
        chunks=sum(row.chunks for row in rows),
        embeddings=estimate.embeddings,
        tokens=estimate.tokens,
        cost=shown_cost(run, estimate.tokens, estimate.embeddings),
        stopped=look.stopped,
        seconds=round(time.monotonic() - started, 3),
        warnings=(*(() if source.enabled else (DISABLED,)), *plan.warnings, *(crawl.warnings if crawl else ()), *warnings),
        reasons=dict(Counter(item.reason for item in skipped)),
        skipped=skipped[:MAX_SKIPPED],
        crawl=crawl,
    )


@dataclass(slots=True)
class _Estimate:
    """What would be paid: a text that stands in several documents is paid once."""

    run: IngestionRun
    embeddings: int = 0
    tokens: int = 0
    _known: set[bytes] = field(default_factory=set)

    def count(self, reading: Reading) -> Previewed:
        run, item, document = self.run, reading.item, reading.item.document
        prefix = run.space.embedding_model.document_prefix
        wanted = {text_hash(prefix + text): passage["tokens"] for text, passage in zip(reading.texts(), reading.passages, strict=True)}
        wanted = {digest: tokens for digest, tokens in wanted.items() if digest not in self._known}
        self._known.update(wanted)
        paid = EmbeddedText.objects.filter(
            organization_id=run.organization_id, space_id=run.space_id, text_hash__in=list(wanted), vector__isnull=False
        )
        for digest in paid.values_list("text_hash", flat=True):
            wanted.pop(bytes(digest), None)
        self.embeddings += len(wanted)
        self.tokens += sum(wanted.values())
        answers = document is not None and document.generation and document.tombstoned_at is None
        return Previewed(
            document,
            name=item.key,
            title=(reading.extracted["title"] or item.title)[:300],
            change=Change.CHANGED if answers else Change.NEW,
            chunks=len(reading.passages),
            embeddings=len(wanted),
            tokens=sum(wanted.values()),
        )


def _failed(item: RunItem) -> Previewed:
    return Previewed(item.document, item.key, item.title, Change.FAILED, reason=item.reason, text=item.error)


def _gone(run: IngestionRun, look: Look) -> tuple[list[Previewed], Sequence[str]]:
    """Documents that a run would count as missing or remove, by the rules of its finish; and what there is to say about that."""
    seen = what_was_seen({bytes(i.key_hash): finding(i.verdict or Verdict.INGESTED, i.reason, i.response) for i in look.items})
    known = Document.objects.filter(source=run.source_id, tombstoned_at=None)
    site, is_whole = (look.state, look.is_whole) if isinstance(look, SiteLook) else (SiteState(), True)
    decided = conclude(run, known, seen, completed=is_whole, site=site)
    removals = set(decided.removals)
    ids = [each.document for each in decided.decisions if each.action == Action.MISS or each.document in removals]
    gone = known.filter(id__in=ids).defer("metadata", "page_spans").order_by("id")
    if not decided.concludes:
        return [], ("A run that sees this concludes nothing about documents that it does not find.",)
    braked = f"It would remove {len(removals)} documents, so it would ask for a confirmation first."
    return [_missing(row, row.id in removals, run) for row in gone], ((braked,) if decided.braked else ())


def _missing(document: Document, removed: bool, run: IngestionRun) -> Previewed:
    limit = plan_for(run).settings.tombstone_after_missed_runs
    text = "A run would remove it." if removed else f"Missing in {document.missed_runs + 1} runs; it is removed after {limit} in a row."
    return Previewed(document, document.key, document.title, Change.GONE, text=text)
