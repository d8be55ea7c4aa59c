"""Why is this page not in my knowledge base? What the source's rules say of an address now, and what its last runs did with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from config.errors import Conflict, InvalidInput
from ingestion.crawl.admission import Admission
from ingestion.crawl.urls import UrlRefused, absolute, identity, origin
from ingestion.models import CrawledHost, IngestionRun, RunItem
from ingestion.sources.web.hosts import refusal, robots_of_row
from ingestion.sources.web.visit import agent_of, scope_of
from kb import schemas
from kb.models import Document, KnowledgeBase, Source
from kb.models.base import key_hash
from kb.schemas.web import Web

RUNS = 5


@dataclass(frozen=True, slots=True)
class Explanation:
    """`key` is what the address is known by. `refused` and `robots` are (code, sentence) of what keeps a run from asking for it, or None;
    `host` is what a run last read of its robots.txt, None if none did. `verdicts` has the last runs, newest first, each with its item."""

    url: str
    key: str
    refused: tuple[str, str] | None
    robots: tuple[str, str] | None
    host: CrawledHost | None
    document: Document | None
    verdicts: Sequence[tuple[IngestionRun, RunItem | None]]
    answer: str


def explain_address(source: Source, url: str) -> Explanation:
    """`Conflict` for a source that crawls nothing, `InvalidInput` for what is no address."""
    web, patience = _rules_of(source)
    try:
        url = absolute(url.strip(), base=web.start_url)
        key = identity(url)
    except UrlRefused as error:
        raise InvalidInput(f"`url` cannot be read: {error}", errors=[{"path": "url", "message": str(error)}]) from error
    judged = Admission(scope_of(web)).judge(url)
    digest = key_hash(key)
    runs = list(IngestionRun.objects.filter(source=source, kind=IngestionRun.Kind.INGEST).order_by("-created_at")[:RUNS])
    rows = RunItem.objects.filter(run__in=runs, key_hash=digest).defer("passages", "text_hashes", "extracted")
    items = {item.run_id: item for item in rows}
    host = CrawledHost.objects.filter(run__in=runs, origin=origin(url)[:300]).order_by("-read_at").first()
    robots = refusal(robots_of_row(host, agent=agent_of(web)), url) if host is not None and web.respect_robots else None
    document = Document.objects.filter(source=source, key_hash=digest).first()
    refused = (judged.reason, judged.text) if judged.reason and key != identity(web.start_url) else None
    verdicts = [(run, items.get(run.id)) for run in runs]
    answer = _standing(document, verdicts, patience) or _answer(refused, robots, verdicts)
    return Explanation(url, key, refused, robots, host, document, verdicts, answer)


def _rules_of(source: Source) -> tuple[Web, int]:
    """How it crawls, and after how many missed runs a document goes."""
    document = schemas.load_stored(KnowledgeBase.objects.select_related("current").get(id=source.knowledge_base_id).current.document)
    entry = next((entry for entry in document.sources if UUID(entry.id) == source.id), None)
    if entry is None or entry.web is None:
        raise Conflict("This source crawls no site. Only a source of type web can say what it does with an address.")
    return entry.web, entry.settings.tombstone_after_missed_runs


def _standing(document: Document | None, verdicts: Sequence[tuple[IngestionRun, RunItem | None]], patience: int) -> str:
    """What there is to say of a document that answers, or did; "" where there is none."""
    last = next((item for _, item in verdicts if item is not None), None)
    if document is not None and document.tombstoned_at is not None:
        if last is not None and last.verdict == RunItem.Verdict.REMOVED:
            return f"It was removed on {document.tombstoned_at:%Y-%m-%d}. {last.error}".rstrip()
        return f"It was removed on {document.tombstoned_at:%Y-%m-%d}; no run has taken it in since."
    if document is None or not document.chunk_count:
        return ""
    there = f"It is in the knowledge base, with {document.chunk_count} chunks."
    if document.missed_runs:
        said = next((item.error for run, item in verdicts[:1] if item is not None and item.error), "")
        missed = f"{document.missed_runs} complete {'run' if document.missed_runs == 1 else 'runs'} in a row did not find it any more"
        return " ".join(filter(None, (there, f"But {missed}; after {patience} it is removed.", said)))
    return f"{there} The last attempt failed: {document.last_error}" if document.last_error else there


def _answer(
    refused: tuple[str, str] | None,
    robots: tuple[str, str] | None,
    verdicts: Sequence[tuple[IngestionRun, RunItem | None]],
) -> str:
    """The nearest cause, in one sentence for people."""
    for why in (refused, robots):
        if why is not None:
            return why[1]
    if not verdicts:
        return "The source has not run yet."
    last = next((item for _, item in verdicts if item is not None), None)
    if last is None:
        return "No run came to it: no page that was read links to it, and no sitemap lists it. Add it to a sitemap, or raise web.max_depth."
    if not last.verdict:
        return "The run that is under way has it on its list."
    return last.error or f"The last run that met it says: {last.verdict} {last.reason}".rstrip() + "."
