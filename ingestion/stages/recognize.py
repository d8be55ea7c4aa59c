"""The recognize stage: wanted parts → text, one at a time, each committed at once. What is in flight is all that a kill repeats."""

import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from config.errors import ExtractionError, LecternError, ProviderError, Unavailable
from ingestion import claims
from ingestion.children import recognizer
from ingestion.extract.encodings import clean
from ingestion.models import IngestionRun, RecognizedPart, RunItem
from ingestion.models.parts import WAITING
from ingestion.outages import insist
from ingestion.plan import plan_for
from ingestion.recognition import Recognition, recognition_for
from ingestion.recognizing import ask_service
from ingestion.stages.parting import settle
from ingestion.stages.slices import Slice
from kb import blobs
from kb.models import Blob

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
MAX_FAILURES = 8
MAX_UNANSWERED = 3  # a call that brings nothing may have been paid, and held the slot of everybody
HELD_BACK = 10_000  # parts that wait for a service that fails
LEASE_MARGIN = 10.0  # seconds between the end of the longest recognition, and the call that may follow it, and the commit
OUTAGE_SECONDS = 10.0

_WAITING = """
      FROM ingestion_runitem item JOIN kb_blob blob ON blob.id = item.blob_id
      JOIN ingestion_recognizedpart part
        ON part.organization_id = item.organization_id AND part.content_hash = blob.sha256 AND part.recipe = item.recipe
       AND part.position < item.parts
     WHERE item.run_id = %(run)s AND item.stage = 'parted' AND part.text IS NULL AND part.error = ''
       AND (part.not_before IS NULL OR part.not_before <= now())
       AND (part.lease_until IS NULL OR part.lease_until < now())
"""
# Materialised for the reason that `items.take` names.
_TAKE = f"""
    WITH free AS MATERIALIZED (
        SELECT part.id, item.id AS item_id {_WAITING} ORDER BY item.id, part.position LIMIT 1 FOR NO KEY UPDATE OF part SKIP LOCKED)
    UPDATE ingestion_recognizedpart part
       SET lease_token = %(token)s, lease_until = now() + %(lease)s, attempts = part.attempts + 1
      FROM free
     WHERE part.id = free.id
 RETURNING part.id, free.item_id
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Wanted:
    """A part that is leased, and the item that waits for it."""

    row: RecognizedPart
    item: RunItem


def work(run: IngestionRun, part: Slice) -> bool:
    """Recognize what the run's items wait for until the slice ends. False if nothing could be taken now: the sweep comes back to it."""
    settle(run)
    files = _Files()
    token = uuid4()
    try:
        while not part.is_over and claims.check(run):
            wanted = _take(run, token)
            if wanted is None:
                break
            _work_part(run, wanted, files)
            settle(run)
            part.beat()
    finally:
        files.close()
        insist(partial(_give_back, token))
    return _is_free(run)


class _Files:
    """The file of the part at hand, kept for the parts that follow: a remote storage is asked once for it, not for each page."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._blob: UUID | None = None
        self._path: Path | None = None

    def path(self, blob: Blob) -> Path:
        if self._path is None or blob.id != self._blob:
            self.close()
            self._path, self._blob = self._open.enter_context(blobs.local_path(blob)), blob.id
        return self._path

    def close(self) -> None:
        self._open.close()
        self._path = None


def _take(run: IngestionRun, token: UUID) -> Wanted | None:
    """The next part, in reading order. One that was taken three times without an answer killed its worker each time, and is given up."""
    while True:
        with claims.writing(run), connection.cursor() as cursor:
            lease = timedelta(seconds=max(settings.ENV.lease_seconds, 2 * settings.ENV.recognize_seconds + LEASE_MARGIN))
            cursor.execute(_TAKE, {"run": run.id, "token": token, "lease": lease})
            taken = cursor.fetchone()
            if taken is None:
                return None
            row = RecognizedPart.objects.get(id=taken[0])
            if row.attempts <= MAX_ATTEMPTS:
                return Wanted(row, RunItem.objects.select_related("blob", "document__file").get(id=taken[1]))
            _give_up(row, f"Its worker died {MAX_ATTEMPTS} times.", retires=False)


def _work_part(run: IngestionRun, wanted: Wanted, files: _Files) -> None:
    """Recognize one part and commit what came of it: text, an error that stays, or another time to try."""
    row = wanted.row
    plan = plan_for(run, wanted.item.policy)
    recognition = recognition_for(run.organization_id, ocr=plan.ocr, policy=plan.policy)
    began = time.monotonic()
    try:
        found = _recognize(wanted, recognition, files.path(wanted.item.blob))
        # Read is read: also a run that was closed meanwhile leaves it to whoever wants the part next. What cannot be kept counts as a
        # failure like any other: it would be asked for, and paid, again and again.
        insist(partial(_keep, row, found))
    except ExtractionError as error:
        insist(partial(_give_up, row, error.message, retires=error.retires))
    except Unavailable as error:
        insist(partial(_put_off, row, error.message, seconds=OUTAGE_SECONDS))
    except ProviderError as error:
        insist(partial(_wait_for_service, row, error, held=time.monotonic() - began))
    except LecternError as error:
        insist(partial(_put_off, row, error.message, seconds=_wait(row, error), failed=True, final=not error.transient))
    except Exception as error:
        log.exception("A part of %s could not be recognized.", wanted.item)
        message = f"Recognizing it stopped with {type(error).__name__}: {error}"
        insist(partial(_put_off, row, message, seconds=_wait(row, None), failed=True))
    _note_progress(run, wanted.item)


def _recognize(wanted: Wanted, recognition: Recognition, path: Path) -> Mapping[str, Any]:
    row = wanted.row
    last = row.position == wanted.item.parts - 1
    asked = {"kind": row.kind, "page": row.page, "start": row.start, "end": row.end, "last": last}
    reply = recognizer().run(recognition.request(asked, path=str(path), name=wanted.item.file_name), owner=row.organization_id)
    if "recognized" in reply:
        return reply["recognized"]
    return ask_service(recognition, row.kind, reply, organization_id=wanted.item.organization_id).to_json()


def _keep(row: RecognizedPart, found: Mapping[str, Any]) -> None:
    details = {name: value for name, value in found.items() if name != "text" and value not in (None, "", [])}
    RecognizedPart.objects.filter(id=row.id, text=None).update(
        text=found["text"], details=details, lease_token=None, lease_until=None, attempts=0, failures=0, used_at=timezone.now()
    )


def _give_up(row: RecognizedPart, message: str, *, retires: bool) -> None:
    mine = RecognizedPart.objects.filter(id=row.id, lease_token=row.lease_token, text=None)
    mine.update(error=clean(message)[0][:2000], retires=retires, lease_token=None, lease_until=None)


def _wait_for_service(row: RecognizedPart, error: ProviderError, *, held: float) -> None:
    """Try again later, and until then nothing else of the organization by that service: the longer it `held` us (seconds), the longer it
    is let alone, so that the parts of others come first."""
    seconds = max(_wait(row, error), held * 2 ** (row.failures + 1))
    most = MAX_FAILURES if error.extra.get("upstream_status") else MAX_UNANSWERED
    _put_off(row, error.message, seconds=seconds, failed=True, final=not error.transient, most=most)
    if not error.transient:
        return
    until = timezone.now() + timedelta(seconds=seconds)
    with transaction.atomic():
        waiting = RecognizedPart.objects.select_for_update(skip_locked=True).filter(
            WAITING, organization_id=row.organization_id, kind=row.kind, lease_token=None
        )
        held_back = list(waiting.exclude(not_before__gte=until).values_list("id", flat=True)[:HELD_BACK])
        RecognizedPart.objects.filter(id__in=held_back).update(not_before=until)


def _put_off(
    row: RecognizedPart, message: str, *, seconds: float, failed: bool = False, final: bool = False, most: int = MAX_FAILURES
) -> None:
    """Try again later; nobody died. After `most` failures in a row the part is given up with the last one's words."""
    failures = row.failures + failed
    if final or failures >= most:
        _give_up(row, message, retires=False)
        return
    RecognizedPart.objects.filter(id=row.id, lease_token=row.lease_token, text=None).update(
        lease_token=None,
        lease_until=None,
        attempts=max(0, row.attempts - 1),
        failures=failures,
        not_before=timezone.now() + timedelta(seconds=seconds),
    )


def _wait(row: RecognizedPart, error: LecternError | None) -> float:
    return getattr(error, "retry_after", None) or min(60.0, 0.5 * 2**row.failures)


def _note_progress(run: IngestionRun, item: RunItem) -> None:
    """A long scan is alive as long as its pages come. Raises `ClaimLost`."""
    with claims.writing(run):
        RunItem.objects.filter(id=item.id, stage=RunItem.Stage.PARTED).update(changed_at=timezone.now())


def _give_back(token: UUID) -> None:
    """Free what the slice leased and did not get to the end of; that was no death."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ingestion_recognizedpart SET lease_token = NULL, lease_until = NULL, attempts = greatest(attempts - 1, 0)"
            " WHERE lease_token = %s AND text IS NULL AND error = ''",
            [token],
        )


def _is_free(run: IngestionRun) -> bool:
    """Whether a part that the run waits for could be taken now."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT 1 {_WAITING})", {"run": run.id})
        return cursor.fetchone()[0]
