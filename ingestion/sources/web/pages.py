"""What a page becomes once it is read: links for the frontier, and a verdict where it is no document of its own."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.utils import timezone

from ingestion import claims
from ingestion.crawl.admission import Admission
from ingestion.crawl.urls import UrlRefused, absolute, identity
from ingestion.extract.extraction import content_hash
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan
from ingestion.reading import Reading
from ingestion.rows import update_rows
from ingestion.sources.web import frontier
from ingestion.sources.web.frontier import Found
from ingestion.sources.web.rendering import was_rendered
from ingestion.sources.web.visit import scope_of
from ingestion.stages.items import advance, own
from ingestion.stages.listing import is_current
from kb.models import Document
from kb.models.base import key_hash

Stage, Verdict, Via = RunItem.Stage, RunItem.Verdict, RunItem.Via
DEFERENCES = 10  # of canonical links and redirects that lead to each other
DEFERS = ("duplicate_of", "redirected")
RUNS_REMEMBERED = 4


@dataclass(frozen=True, slots=True)
class Read:
    """A page that was read: `verdict` is "" if it is to be cut, embedded and published; with `render` it is not final, a browser
    makes the page first."""

    reading: Reading
    found: list[Found]
    verdict: str = ""
    reason: str = ""
    text: str = ""
    response: dict[str, Any] = field(default_factory=dict)
    render: bool = False


_admissions: OrderedDict[UUID, Admission] = OrderedDict()


def _admission(run: IngestionRun, plan: Plan) -> Admission:
    """Kept for the last runs: it remembers what it decided about a site's links."""
    found = _admissions.pop(run.id, None) or Admission(scope_of(plan.web))
    _admissions[run.id] = found
    while len(_admissions) > RUNS_REMEMBERED:
        _admissions.popitem(last=False)
    return found


def judge(run: IngestionRun, reading: Reading, plan: Plan) -> Read:
    """What is done with a reading. Files that a site links have no page and are documents like uploaded ones."""
    page, item = reading.page, reading.item
    if page is None:
        return Read(reading, [])
    admission = _admission(run, plan)
    found = list(_links(item, page, plan, admission))
    item.content_hash = content_hash(reading.extracted["title"], reading.markdown)
    if target := _elsewhere(item, page["refresh"], admission):
        found.append(target)
        if not reading.markdown:
            response = {"target": target.key, "permanent": False}
            return Read(reading, found, Verdict.SKIPPED, "redirected", f"Leads to {target.url}", response)
    if page["noindex"] and plan.web.respect_robots:
        return Read(reading, found, Verdict.SKIPPED, "noindex", "The page asks not to be indexed. web.respect_robots takes it in anyway.")
    if page["needs_javascript"] or (was_rendered(item) and not reading.markdown):
        return _shell(reading, found, plan)
    if (item.response or {}).get("same_for_all") and item.document_id is not None:
        text = "The site answers this and every made-up address with the same page, as for maintenance. What it had is kept."
        return Read(reading, found, Verdict.FAILED, "same_for_all", text)
    canonical = _canonical(item, page, plan, admission)
    if canonical is not None and not (item.response or {}).get("deferred"):
        response = {"target": canonical.key, "permanent": True, "deferred": True}
        text = f"It names {canonical.url} as the page of this content."
        return Read(reading, [*found, canonical], Verdict.SKIPPED, "duplicate_of", text, response)
    if not reading.markdown:
        return Read(reading, found, Verdict.SKIPPED, "empty", "The page holds no text to search in.")
    if known_hash(item, run, plan) == item.content_hash:
        return Read(reading, found, Verdict.UNCHANGED)
    return Read(reading, found)


def _shell(reading: Reading, found: list[Found], plan: Plan) -> Read:
    """A page without text of its own: a browser makes it if the source wants that, and it is not what a browser made."""
    if was_rendered(reading.item):
        return Read(reading, found, Verdict.FAILED, "needs_javascript", "The page is made by scripts, and in a browser too it has no text.")
    text = "The page is made by scripts in a browser; without them it holds no text. Set web.render to auto, or crawl another address."
    return Read(reading, found, Verdict.FAILED, "needs_javascript", text, render=plan.web.render == "auto")


def _links(item: RunItem, page: Mapping[str, Any], plan: Plan, admission: Admission) -> list[Found]:
    """Each link once, with why it is not followed where it is not."""
    deepest = item.depth >= plan.web.max_depth
    found = []
    for url, _text, nofollow in page["links"]:
        judged = admission.judge(url)
        reason, text = judged.reason, judged.text
        if not reason and (nofollow or page["nofollow"]) and plan.web.respect_robots:
            reason, text = "nofollow", "The link, or its page, asks not to be followed."
        elif not reason and deepest:
            reason, text = "too_deep", f"It is more than web.max_depth ({plan.web.max_depth}) links away from the start."
        found.append(Found(url, judged.key, Via.LINK, item.depth + 1, item.id, reason, text))
    return found


def _elsewhere(item: RunItem, url: str, admission: Admission) -> Found | None:
    """Where the page sends a browser by itself, if that is another address."""
    if not url:
        return None
    judged = admission.judge(url)
    if judged.key == item.key:
        return None
    return Found(url, judged.key, Via.REDIRECT, item.depth, item.id, judged.reason, judged.text)


def _canonical(item: RunItem, page: Mapping[str, Any], plan: Plan, admission: Admission) -> Found | None:
    """The page that this one names as its content's own, where that may be believed: on the same host, in scope, and not the start page
    of all pages, which is a common mistake of templates."""
    url = page["canonical"]
    if not url:
        return None
    judged = admission.judge(url)
    there, here = urlsplit(judged.key), urlsplit(item.key)
    if judged.reason or judged.key == item.key or there.netloc != here.netloc:
        return None
    try:
        start = identity(absolute(plan.web.start_url, base=plan.web.start_url))
    except UrlRefused:
        start = ""
    if there.path != here.path and (there.path in ("", "/") or judged.key == start):
        return None
    return Found(url, judged.key, Via.CANONICAL, item.depth, item.id)


def known_hash(item: RunItem, run: IngestionRun, plan: Plan) -> bytes | None:
    """The content hash with which the page is unchanged, if what stands of it was made under the settings of this run."""
    document = item.document
    if document is None or document.tombstoned_at or document.content_hash is None or not is_current(document, run, plan):
        return None
    return bytes(document.content_hash)


def write(run: IngestionRun, pages: Sequence[Read]) -> None:
    """Verdicts and links of pages; inside `claims.writing`. Those without a verdict are only looked at for their links."""
    held = {item.id for item in own(run, [each.reading.item for each in pages])}
    pages = [each for each in pages if each.reading.item.id in held]
    if not IngestionRun.objects.filter(id=run.id, listed_at__isnull=False).exists():
        frontier.add(run, [found for each in pages for found in each.found])
        _note_cut(pages)
        pages = _without_shells(pages)
    closed = [each for each in pages if each.verdict]
    advance(
        Stage.DONE,
        [
            (
                each.reading.item,
                {
                    "verdict": each.verdict,
                    "reason": each.reason,
                    "error": each.text[:2000],
                    "title": each.reading.extracted["title"][:300],
                    "document": each.reading.item.document_id,
                    "response": {**(each.reading.item.response or {}), **each.response},
                    "passages": None,
                    "text_hashes": None,
                },
            )
            for each in closed
        ],
    )
    _note_documents(run, closed)


def _note_cut(pages: Sequence[Read]) -> None:
    """A page with more links than are read of one: the crawl has not seen everything."""
    cut = [each.reading.item for each in pages if each.reading.page is not None and each.reading.page["cut"]]
    for item in cut:
        item.response = {**(item.response or {}), "links_cut": True}
    update_rows(RunItem, [(item.id, {"response": item.response}) for item in cut])


def _without_shells(pages: Sequence[Read]) -> list[Read]:
    """Those that a browser is to make go back to the crawl; the others."""
    shells = [each.reading.item for each in pages if each.render]
    advance(Stage.FOUND, [(item, {"response": {"render": True}, "blob": None, "content_hash": None}) for item in shells])
    return [each for each in pages if not each.render]


def _note_documents(run: IngestionRun, closed: Sequence[Read]) -> None:
    seen, failed = [], []
    for each in closed:
        item = each.reading.item
        if item.document_id is None:
            continue
        if each.verdict == Verdict.UNCHANGED:
            values = {"missed_runs": 0, "seen_at": timezone.now(), "last_run_id": run.id, "last_error": "", **item.validators}
            seen.append((item.document_id, values))
        elif each.verdict == Verdict.FAILED:
            failed.append((item.document_id, {"last_error": each.text}))
    for changes in (seen, failed):
        update_rows(Document, sorted(changes, key=lambda change: change[0]))


def reopen_deferred(run: IngestionRun) -> int:
    """Pages that deferred to one which produced nothing are read again for themselves; how many. Once every item has its verdict.

    A canonical may lead to a redirect: what stands at its end counts, or a page would stand beside the one that it names.
    """
    rows = RunItem.objects.filter(run=run, reason="duplicate_of", blob__isnull=False).values_list("id", "key", "response")
    deferred = {key: (identifier, (response or {}).get("target")) for identifier, key, response in rows}
    leads = {key: target for key, (_, target) in deferred.items()}
    verdicts = _follow(run, leads)
    again = []
    for key, (identifier, target) in deferred.items():
        for _ in range(DEFERENCES):
            if target not in leads or target == key:
                break
            target = leads[target]
        if verdicts.get(target) not in (Verdict.INGESTED, Verdict.UNCHANGED):
            again.append(identifier)
    if again:
        with claims.writing(run):
            RunItem.objects.filter(id__in=again, run=run, stage=Stage.DONE).update(
                stage=Stage.FETCHED, verdict="", reason="", error="", changed_at=timezone.now(), attempts=0
            )
    return len(again)


def _follow(run: IngestionRun, leads: dict[str, str | None]) -> dict[str, str]:
    """Verdicts of where pages lead, by key; adds to `leads` where those lead on."""
    verdicts: dict[str, str] = {}
    for _ in range(DEFERENCES):
        ahead = {target for target in leads.values() if target} - verdicts.keys()
        if not ahead:
            break
        rows = RunItem.objects.filter(run=run, key_hash__in=[key_hash(key) for key in ahead]).values_list(
            "key", "verdict", "reason", "response"
        )
        verdicts |= dict.fromkeys(ahead, "")
        for key, verdict, reason, response in rows:
            verdicts[key] = verdict
            if reason in DEFERS and (target := (response or {}).get("target")):
                leads.setdefault(key, target)
    return verdicts
