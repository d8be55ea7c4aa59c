"""What a person or a schedule does to runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from config.errors import Conflict, NotFound
from ingestion import claims, wakes
from ingestion.extract.base import EXTRACTOR_VERSION
from ingestion.models import EmbeddedText, IngestionRun, RunItem
from kb import access
from kb.access import Actor, Level
from kb.models import Chunk, Document, KnowledgeBase, Source, User

Kind, Status, StopReason = IngestionRun.Kind, IngestionRun.Status, IngestionRun.StopReason


@dataclass(frozen=True, slots=True)
class Reextraction:
    """The run that reads again, and how many documents it will read because of it."""

    run: IngestionRun
    documents: int


def start_run(source: Source, *, trigger: str = IngestionRun.Trigger.MANUAL, user: User | None = None, by: str = "") -> IngestionRun:
    """Claim the source and queue a run under the current version; `by` names who asked for it, if that is not the user. Raises
    `Conflict` (disabled, or held by another run)."""
    knowledge_base = require_runnable(source)
    run = claims.claim(source, trigger=trigger, version=knowledge_base.current, space=knowledge_base.space, user=user, by=by)
    transaction.on_commit(partial(wakes.wake, run.id, "crawl"))
    return run


def require_runnable(source: Source) -> KnowledgeBase:
    """Its knowledge base, with version and space. Raises `Conflict` for a source that has no runs, `NotFound` for one that is going."""
    knowledge_base = KnowledgeBase.objects.select_related("current", "space").get(id=source.knowledge_base_id)
    if knowledge_base.state != KnowledgeBase.State.ACTIVE or source.state != Source.State.ACTIVE:
        raise NotFound()
    if source.kind not in settings.CRAWLS:
        raise Conflict(f"A source of kind {source.kind} has nothing that lists its documents; there is nothing to run.")
    if not source.enabled:
        raise Conflict(f"The source '{source.name}' is disabled. Enable it and publish, then run it.")
    return knowledge_base


def get_run(actor: Actor, run_id: str | UUID, level: Level = Level.VIEW) -> IngestionRun:
    """A run that the actor may see. Uploads to a channel are told of by their files, which may be private: their runs are nobody's."""
    run = access.get_row(actor, IngestionRun, run_id, level)
    if run.kind == Kind.PUSH and run.source.kind == Source.Kind.CHANNEL:
        raise NotFound()
    return run


def cancel_run(run: IngestionRun, *, by: str = "a person") -> None:
    """Stop a run; what it has published stays. `Conflict` if it is closed already."""
    if not claims.cancel(run, why=f"Cancelled by {by}"):
        raise Conflict("This run has already ended; there is nothing to cancel.")


def purge_source(source: Source, *, reembed: bool = False, actor: Actor | None = None, user: User | None = None, by: str = "") -> int:
    """Forget what was ingested, so that the next run does everything again; returns how many documents the next run will take in anew.

    With an actor, of documents that it may see alone: private ones of others are not touched. Chunks go on answering until then. Vectors
    of equal texts are reused, unless `reembed`. Takes the source's claim.
    """
    documents = _documents(source, actor)
    with maintaining(source, user=user, by=by) as run, claims.writing(run):
        if reembed:
            forget_vectors(documents)
        living = documents.filter(tombstoned_at=None).count()
        documents.update(
            content_hash=None,
            extract_fingerprint="",
            chunk_fingerprint="",
            context_fingerprint="",
            quarantined_hash=None,
            refused_under="",
            etag="",
            last_modified="",
            **({"space": None} if reembed else {}),  # a chunk keeps its vector only within its space
        )
        return living


def reextract_source(
    source: Source, *, outdated_only: bool = False, actor: Actor | None = None, user: User | None = None, by: str = "", **started: str
) -> Reextraction:
    """Read the source's documents again, or those that an older extractor read, by a run that starts now; of an actor those that it may
    see. What is stands until then, and equal passages keep their chunks and vectors. Raises what `start_run` raises; what is marked then
    stays so for the next run."""
    require_runnable(source)
    living = _documents(source, actor).filter(tombstoned_at=None)
    if outdated_only:
        living = living.exclude(extractor_version=EXTRACTOR_VERSION)
    with maintaining(source, user=user, by=by) as run, claims.writing(run):
        marked = living.update(extract_fingerprint="", etag="", last_modified="", quarantined_hash=None, refused_under="")
    return Reextraction(start_run(source, user=user, by=by, **started), marked)


def _documents(source: Source, actor: Actor | None) -> QuerySet[Document]:
    rows = Document.objects.all() if actor is None else access.rows(actor, Document)
    return rows.filter(source=source)


@contextmanager
def maintaining(source: Source, *, user: User | None = None, by: str = "") -> Iterator[IngestionRun]:
    """A maintenance claim that ends with its work, also when that fails: left open it would block the source for days.

    It is leased, so that the sweep, which sees a run without open items, does not close it meanwhile; long work renews it
    by `claims.keep`.
    """
    run = claims.claim(
        source,
        kind=Kind.MAINTENANCE,
        version=None,
        space=None,
        user=user,
        by=by,
        listed_at=timezone.now(),
        lease_token=uuid4(),
        lease_until=timezone.now() + timedelta(seconds=settings.ENV.lease_seconds),
    )
    try:
        yield run
    except BaseException as error:
        claims.finish(run, status=Status.FAILED, stop_reason="", error=str(error)[:2000])
        raise
    claims.finish(run, status=Status.SUCCEEDED, stop_reason=StopReason.COMPLETED)


def forget_vectors(documents: QuerySet[Document]) -> None:
    """Drop the paid vectors of the documents' texts, so that the next run pays for them again."""
    texts = Chunk.objects.filter(
        document__in=documents,
        document__space=OuterRef("space"),
        organization=OuterRef("organization"),
        text_hash=OuterRef("text_hash"),
    )
    EmbeddedText.objects.filter(Exists(texts)).delete()


def settle_closed_run(run: IngestionRun, *, limit: int = 1000) -> int:
    """Give the items that a closed run left open their verdict; returns how many."""
    ids = RunItem.objects.filter(run=run).exclude(stage=RunItem.Stage.DONE).values_list("id", flat=True)[:limit]
    return RunItem.objects.filter(id__in=list(ids)).update(
        stage=RunItem.Stage.DONE,
        verdict=RunItem.Verdict.SKIPPED,
        reason="run_closed",
        passages=None,
        text_hashes=None,
        extracted=None,
        lease_token=None,
        lease_until=None,
        changed_at=timezone.now(),
    )
