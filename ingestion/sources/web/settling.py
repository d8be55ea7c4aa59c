"""What the answers of a site become: stored bytes for the extraction, or a verdict. One transaction for several."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from ingestion import claims, pacing
from ingestion.crawl.admission import Admission
from ingestion.crawl.answers import PERMANENT_REDIRECTS, Kind, Meaning, meaning_of
from ingestion.crawl.fetch import Answer
from ingestion.crawl.soft404 import page_fingerprint
from ingestion.crawl.urls import UrlRefused, absolute, origin
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan
from ingestion.reconcile import SAYS_GONE
from ingestion.rows import update_rows
from ingestion.sources.web import frontier
from ingestion.sources.web.frontier import Found
from ingestion.sources.web.requests import Asked
from ingestion.stages.items import advance, own
from ingestion.stages.listing import is_current
from kb import blobs
from kb.models import Document

Stage, Verdict = RunItem.Stage, RunItem.Verdict
RETRY_SECONDS = 5.0
BACK_OFF_SECONDS = 30.0
LONGEST_RETRY = 600.0  # a server that wants to be left alone for longer is asked again in the next run
VERDICTS = {Kind.UNCHANGED: Verdict.UNCHANGED, Kind.REDIRECT: Verdict.SKIPPED, Kind.SKIPPED: Verdict.SKIPPED, Kind.FAILED: Verdict.FAILED}


SAME_FOR_ALL = Meaning(Kind.FAILED, "same_for_all", "The site answers this and every made-up address with the same page.")
SOFT_404 = Meaning(Kind.SKIPPED, "soft_404", "The site answers made-up addresses with this same page: there is no such page.")


@dataclass(frozen=True, slots=True)
class Probe:
    """What the site answers for an address that nobody has: pages that look like it are none. `start` is the key of the start page."""

    fingerprint: bytes
    start: str
    same_for_all: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """An answer with what it means, before it is written."""

    item: RunItem
    asked: Asked
    meaning: Meaning
    same_for_all: bool = False  # the start page of a site that answers every address with it: read, to tell scripts from maintenance


def looks_like(probe: Probe, answer: Answer) -> bool:
    """Whether the answer is the page that made-up addresses get."""
    return answer.status == 200 and page_fingerprint(answer.body, url=answer.url) == probe.fingerprint


def understand(item: RunItem, asked: Asked, *, plan: Plan, probe: Probe | None) -> Settled:
    """What an answer says about its document."""
    if asked.failure is not None:
        tries = 2 if asked.failure.reason == "unreachable" else 1
        kind = Kind.SKIPPED if asked.failure.reason in SAYS_GONE else Kind.FAILED
        return Settled(item, asked, Meaning(kind, asked.failure.reason, asked.failure.message, tries))
    answer = asked.answer
    meaning = meaning_of(
        status=answer.status,
        media_type=answer.media_type,
        location=answer.location,
        start=answer.body[:2048],
        cut=answer.cut,
        max_bytes=plan.settings.max_bytes_per_page,
    )
    if meaning.kind == Kind.FILE and not plan.web.include_linked_files:
        meaning = Meaning(Kind.SKIPPED, "linked_file", "It is a file, and web.include_linked_files is off.")
    if meaning.kind == Kind.PAGE and probe is not None and looks_like(probe, answer):
        if item.key == probe.start:
            return Settled(item, asked, meaning, same_for_all=True)
        meaning = SAME_FOR_ALL if probe.same_for_all else SOFT_404
    return Settled(item, asked, meaning)


def slow_down(settled: Settled) -> None:
    """Leave a host alone for as long as it says, or a while, when it was asked too often."""
    if settled.meaning.reason == "rate_limited":
        answer = settled.asked.answer
        pacing.push_back(origin(settled.asked.url), min((answer and answer.retry_after) or BACK_OFF_SECONDS, LONGEST_RETRY))


def tries_again(settled: Settled) -> float | None:
    """Seconds until it is asked again, None if what came is the verdict."""
    made = settled.item.requests + settled.asked.requests
    if made >= settled.meaning.tries:
        return None
    wanted = settled.asked.answer.retry_after if settled.asked.answer is not None else None
    if wanted is not None:
        return wanted if wanted <= LONGEST_RETRY else None
    return RETRY_SECONDS * 3 ** (made - 1)


def write(run: IngestionRun, settled: Sequence[Settled], *, plan: Plan, admission: Admission, lease: UUID) -> None:
    """Commit what is known of the items: from here on none of them is asked for again."""
    kept = [each for each in settled if each.meaning.kind in (Kind.PAGE, Kind.FILE)]
    contents = blobs.store_contents(run.organization_id, [each.asked.answer.body for each in kept])
    stored = {each.item.id: blob for each, blob in zip(kept, contents, strict=True)}
    now = timezone.now()
    with claims.writing(run, lease=lease):
        held = {item.id for item in own(run, [each.item for each in settled])}
        settled = [each for each in settled if each.item.id in held]
        fetched, closed, postponed, unchanged, found = [], [], [], [], []
        for each in settled:
            values = {"requests": each.item.requests + each.asked.requests, "document": each.item.document_id, "epoch": each.item.epoch}
            again = tries_again(each) if each.meaning.kind == Kind.FAILED else None
            if again is not None:
                postponed.append((each.item, {**values, "error": each.meaning.text, "not_before": now + timedelta(seconds=again)}))
                continue
            values |= {"url": each.asked.url, "response": response_of(each), "size": _size(each.asked.answer)}
            if each.item.id in stored:
                digest = hashlib.sha256(each.asked.answer.body).digest()
                same = each.meaning.kind == Kind.FILE and is_same_file(each.item, digest, run, plan)
                if not same:
                    fetched.append((each.item, {**values, "blob": stored[each.item.id], "content_hash": digest}))
                    continue
                each = replace(each, meaning=Meaning(Kind.UNCHANGED))
            if each.meaning.kind == Kind.UNCHANGED:
                unchanged.append(each)
            target, more = target_of(each, admission)
            found += more
            values["response"] = {**(values["response"] or {}), **target}
            outcome = {"verdict": VERDICTS[each.meaning.kind], "reason": each.meaning.reason, "error": each.meaning.text[:2000]}
            closed.append((each.item, {**values, **outcome}))
        advance(Stage.FETCHED, fetched)
        advance(Stage.DONE, closed)
        advance(Stage.FOUND, postponed)
        frontier.add(run, found)
        _note_unchanged(run, unchanged)
        _note_errors(closed)


def is_same_file(item: RunItem, digest: bytes, run: IngestionRun, plan: Plan) -> bool:
    """Whether the bytes of a linked file are those that stand, under these settings."""
    document = item.document
    if document is None or document.tombstoned_at or document.content_hash is None:
        return False
    return bytes(document.content_hash) == digest and is_current(document, run, plan)


def response_of(settled: Settled) -> dict[str, Any] | None:
    """What is kept of an answer beside its body."""
    answer = settled.asked.answer
    if answer is None:
        return None
    return {
        **({"rendered": settled.asked.rendered} if settled.asked.rendered else {}),
        **({"same_for_all": True} if settled.same_for_all else {}),
        "status": answer.status,
        "media_type": answer.media_type,
        "charset": answer.charset,
        "etag": answer.etag,
        "last_modified": answer.last_modified,
        "robots": answer.headers.get("x-robots-tag", "")[:1000],
    }


def _size(answer: Answer | None) -> int:
    return len(answer.body) if answer is not None else 0


def target_of(settled: Settled, admission: Admission) -> tuple[dict[str, Any], list[Found]]:
    """Where a redirect leads, and the address that it adds to the frontier."""
    if settled.meaning.kind != Kind.REDIRECT:
        return {}, []
    try:
        url = absolute(settled.asked.answer.location, base=settled.asked.answer.url)
    except UrlRefused as error:
        return {"problem": str(error)}, []
    judged = admission.judge(url)
    item = settled.item
    target = {"target": judged.key, "permanent": settled.asked.answer.status in PERMANENT_REDIRECTS}
    return target, [Found(url, judged.key, RunItem.Via.REDIRECT, item.depth, item.id, judged.reason, judged.text)]


def _note_unchanged(run: IngestionRun, unchanged: Sequence[Settled]) -> None:
    """The document was seen, with the validators that came this time: a server may change them without changing the text."""
    changes = []
    for each in unchanged:
        document, answer = each.item.document, each.asked.answer
        if document is None:
            continue
        kept = document if answer.status == 304 else None  # a 304 need not repeat them
        values = {
            "missed_runs": 0,
            "seen_at": timezone.now(),
            "last_run_id": run.id,
            "last_error": "",
            "etag": (answer.etag or (kept.etag if kept else ""))[:1024],
            "last_modified": (answer.last_modified or (kept.last_modified if kept else ""))[:64],
        }
        changes.append((document.id, values))
    update_rows(Document, sorted(changes, key=lambda change: change[0]))


def _note_errors(closed: Sequence[tuple[RunItem, dict[str, Any]]]) -> None:
    """A document whose attempt failed keeps the error. One that is gone by what the site says has none: it is missed."""
    changes = []
    for item, values in closed:
        if item.document_id and (values["verdict"] == Verdict.FAILED or values["reason"] in SAYS_GONE):
            changes.append((item.document_id, {"last_error": values["error"] if values["verdict"] == Verdict.FAILED else ""}))
    update_rows(Document, sorted(changes, key=lambda change: change[0]))
