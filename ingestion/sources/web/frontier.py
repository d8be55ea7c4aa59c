"""The frontier of a crawl: rows of `RunItem` in the stage `found`, taken level by level. Addresses that are not fetched are rows too,
with the reason, so that "why is this page not in my knowledge base?" has an answer."""

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from ingestion.models import IngestionRun, RunItem
from kb.models.base import key_hash

Stage, Verdict = RunItem.Stage, RunItem.Verdict

QUEUE_LIMIT = 100_000  # addresses that wait at a time
REFUSED_KEPT = 5_000  # addresses of a run that are remembered though nobody fetches them
# Refused for the way that led there and not for themselves: another way may admit them.
REOPENED = ("nofollow", "too_deep")
_COUNTS_KEPT = 2.0  # seconds
_COUNTING_SHARE = 50  # counting reads every row of the run: of a large one it is done more rarely
_RUNS_REMEMBERED = 8
_KEYS_REMEMBERED = 300_000

# A row that another reader has refused since we looked is reopened like one that we saw.
# By columns: a page has dozens of links, and a model for each costs more than asking for the page.
_INSERT = """
    INSERT INTO ingestion_runitem (organization_id, run_id, key, key_hash, url, via, found_on, depth, stage, verdict, reason, error, title,
                                   warnings, epoch, requests, fingerprints, attempts, failures, chunks, embeddings_computed,
                                   embeddings_reused, tokens, size, created_at, changed_at)
    SELECT %(organization)s, %(run)s, key, key_hash, url, via, found_on, depth, CASE reason WHEN '' THEN 'found' ELSE 'done' END,
           CASE reason WHEN '' THEN '' ELSE 'skipped' END, reason, error, '', '[]', 0, 0, '{}', 0, 0, 0, 0, 0, 0, 0, now(), now()
      FROM unnest(%(keys)s::text[], %(digests)s::bytea[], %(urls)s::text[], %(vias)s::text[], %(pages)s::bigint[], %(depths)s::smallint[],
                  %(reasons)s::text[], %(errors)s::text[]) AS found (key, key_hash, url, via, found_on, depth, reason, error)
     ORDER BY key_hash
    ON CONFLICT (run_id, key_hash) DO UPDATE
       SET stage = 'found', verdict = '', reason = '', error = '', url = excluded.url, via = excluded.via, found_on = excluded.found_on,
           depth = excluded.depth
     WHERE excluded.reason = '' AND ingestion_runitem.stage = 'done' AND ingestion_runitem.reason = ANY(%(reopened)s)
"""


@dataclass(frozen=True, slots=True)
class Found:
    """An address that a run came to. With a `reason` it is written down and not fetched."""

    url: str
    key: str
    via: str
    depth: int
    found_on: int | None = None
    reason: str = ""
    text: str = ""


@dataclass(slots=True)
class _Memory:
    """What this process knows of a run's rows, so that the links of a navigation are not looked up on every page."""

    admitted: set[bytes] = field(default_factory=set)
    refused: set[bytes] = field(default_factory=set)
    waiting: int = 0
    written: int = 0
    count_at: float = 0.0
    is_full: bool = False


_memories: OrderedDict[UUID, _Memory] = OrderedDict()


def _memory(run_id: UUID) -> _Memory:
    memory = _memories.setdefault(run_id, _Memory())
    _memories.move_to_end(run_id)
    while len(_memories) > _RUNS_REMEMBERED:
        _memories.popitem(last=False)
    return memory


def add(run: IngestionRun, found: Iterable[Found]) -> None:
    """Write down addresses that the run does not know yet; inside `claims.writing`. When too many wait, the first one that is left
    out is written down as that, and the run concludes nothing."""
    memory = _memory(run.id)
    fresh: dict[bytes, Found] = {}
    for each in found:
        digest = key_hash(each.key)
        if digest in memory.admitted or (each.reason and digest in memory.refused):
            continue
        if digest not in fresh or (fresh[digest].reason and not each.reason):
            fresh[digest] = each
    if not fresh:
        return
    rows = RunItem.objects.filter(run=run, key_hash__in=list(fresh)).values_list("key_hash", "id", "reason", "stage")
    known = {bytes(digest): (identifier, reason, stage) for digest, identifier, reason, stage in rows}
    _reopen(run, {known[digest][0]: each for digest, each in fresh.items() if digest in known and may_reopen(each, *known[digest][1:])})
    new = sorted((digest, each) for digest, each in fresh.items() if digest not in known)  # in one order, against deadlocks
    kept = _within_bounds(run, memory, new)
    _insert(run, kept)
    left_out = {digest for digest, _ in new} - {digest for digest, _ in kept}
    is_full = any(each.reason == "queue_limit" for _, each in kept)
    transaction.on_commit(lambda: _remember(memory, fresh, left_out, is_full=is_full))


def may_reopen(found: Found, reason: str, stage: str) -> bool:
    """Whether this way admits an address that was refused on another one."""
    return not found.reason and stage == Stage.DONE and reason in REOPENED


def _reopen(run: IngestionRun, found: dict[int, Found]) -> None:
    for identifier in sorted(found):
        each = found[identifier]
        RunItem.objects.filter(id=identifier, run=run, reason__in=REOPENED).update(
            stage=Stage.FOUND, verdict="", reason="", error="", depth=each.depth, via=each.via, found_on=each.found_on, url=each.url
        )


def _within_bounds(run: IngestionRun, memory: _Memory, new: list[tuple[bytes, Found]]) -> list[tuple[bytes, Found]]:
    if (started := time.monotonic()) > memory.count_at:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FILTER (WHERE stage = 'found'), count(*) FILTER (WHERE stage = 'done' AND requests = 0)"
                " FROM ingestion_runitem WHERE run_id = %s",
                [run.id],
            )
            memory.waiting, memory.written = cursor.fetchone()
        memory.count_at = next_count(started)
    kept, is_full = [], memory.is_full
    for digest, each in new:
        if each.reason:
            if memory.written < REFUSED_KEPT:
                memory.written += 1
                kept.append((digest, each))
        elif memory.waiting < QUEUE_LIMIT:
            memory.waiting += 1
            kept.append((digest, each))
        elif not is_full:
            is_full = True
            kept.append((digest, replace(each, reason="queue_limit", text=f"{QUEUE_LIMIT:,} addresses wait already. Narrow the scope.")))
    return kept


def _remember(memory: _Memory, fresh: dict[bytes, Found], left_out: set[bytes], *, is_full: bool) -> None:
    memory.is_full = memory.is_full or is_full  # only now: a run whose row that says so was rolled back would conclude
    if len(memory.admitted) + len(memory.refused) > _KEYS_REMEMBERED:
        memory.admitted.clear()
        memory.refused.clear()
    for digest, each in fresh.items():
        if digest not in left_out:
            (memory.refused if each.reason else memory.admitted).add(digest)


def _insert(run: IngestionRun, kept: Sequence[tuple[bytes, Found]]) -> None:
    if not kept:
        return
    columns = {
        "keys": [each.key for _, each in kept],
        "digests": [digest for digest, _ in kept],
        "urls": [each.url for _, each in kept],
        "vias": [str(each.via) for _, each in kept],
        "pages": [each.found_on for _, each in kept],
        "depths": [each.depth for _, each in kept],
        "reasons": [each.reason for _, each in kept],
        "errors": [each.text[:2000] for _, each in kept],
    }
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, {"run": run.id, "organization": run.organization_id, "reopened": list(REOPENED), **columns})


def row_of(run: IngestionRun, digest: bytes, found: Found) -> RunItem:
    """The item (not saved) of an address."""
    refused = bool(found.reason)
    return RunItem(
        organization_id=run.organization_id,
        run=run,
        key=found.key,
        key_hash=digest,
        url=found.url,
        via=found.via,
        depth=found.depth,
        found_on=found.found_on,
        stage=Stage.DONE if refused else Stage.FOUND,
        verdict=Verdict.SKIPPED if refused else "",
        reason=found.reason,
        error=found.text[:2000],
    )


def next_count(started: float) -> float:
    """When rows are to be counted again, after a count that has just ended."""
    now = time.monotonic()
    return now + max(_COUNTS_KEPT, _COUNTING_SHARE * (now - started))


@dataclass(frozen=True, slots=True)
class Level:
    """The lowest depth of what waits to be fetched, and of what is fetched and not read yet; None where nothing is."""

    found: int | None
    unread: int | None

    @property
    def is_open(self) -> bool:
        """Whether the crawl can go on: it asks for a depth when every page above it is read, and ends when nothing is left."""
        return self.unread is None or (self.found is not None and self.found <= self.unread)


def level(run: IngestionRun) -> Level:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT min(depth) FROM ingestion_runitem WHERE run_id = %(run)s AND stage = 'found'),"
            " (SELECT min(depth) FROM ingestion_runitem WHERE run_id = %(run)s AND stage = 'fetched')",
            {"run": run.id},
        )
        return Level(*cursor.fetchone())


@dataclass(slots=True)
class Totals:
    """What a run has asked for so far, held against its limits."""

    requests: int
    bytes: int
    pages: int  # documents that it has, or will have if what was fetched can be read


def totals(run: IngestionRun) -> Totals:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(requests), 0), coalesce(sum(size), 0), count(*) FILTER (WHERE verdict IN ('ingested', 'unchanged')"
            " OR stage IN ('fetched', 'parted', 'extracted', 'embedded')) FROM ingestion_runitem WHERE run_id = %s",
            [run.id],
        )
        return Totals(*(int(value) for value in cursor.fetchone()))


def close_rest(run: IngestionRun, *, reason: str, text: str) -> int:
    """Give what still waits its verdict when a limit ends the crawl; how many. Inside `claims.writing` or `claims.updating`."""
    return RunItem.objects.filter(run=run, stage=Stage.FOUND).update(
        stage=Stage.DONE,
        verdict=Verdict.SKIPPED,
        reason=reason,
        error=text,
        lease_token=None,
        lease_until=None,
        changed_at=timezone.now(),
    )


def close_host(run: IngestionRun, origin: str, *, reason: str, text: str) -> None:
    """The same for what waits of one host."""
    waiting = RunItem.objects.filter(run=run, stage=Stage.FOUND)
    of_host = waiting.filter(url=origin) | waiting.filter(url__startswith=f"{origin}/") | waiting.filter(url__startswith=f"{origin}?")
    of_host.update(
        stage=Stage.DONE, verdict=Verdict.FAILED, reason=reason, error=text, lease_token=None, lease_until=None, changed_at=timezone.now()
    )
