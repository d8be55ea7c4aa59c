"""One slice of a change of model, and what ends it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from ingestion.stages.texts import CALL_MARGIN
from kb.models import SpaceChange
from kb.providers import ModelSpec
from kb.providers.base import EmbeddingProvider
from kb.stores.coverage import Holding


class ChangeLost(Exception):
    """The change was cancelled, superseded or taken over: whoever works at it stops and writes nothing."""


class Waits(Exception):
    """The change is put off for some seconds; with an error it counts as a fault."""

    def __init__(self, seconds: float, error: str = "") -> None:
        super().__init__(error)
        self.seconds, self.error = seconds, error


@dataclass(slots=True)
class Part:
    """One slice of a change."""

    change: SpaceChange
    token: str
    lease: UUID
    spec: ModelSpec
    provider: EmbeddingProvider
    there: Holding
    until: float = field(default_factory=lambda: time.monotonic() + settings.ENV.slice_seconds)
    fresh_pass: bool = False
    written_in_pass: int = 0

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.until

    @property
    def texts(self) -> dict[str, object]:
        return {"organization": self.change.organization_id, "space": self.change.to_space_id}


@contextmanager
def writing(part: Part, *, longest: float = 0.0) -> Iterator[SpaceChange]:
    """A transaction that may write for the change, and holds it for another lease or as long as a call may take. Raises `ChangeLost`."""
    with transaction.atomic():
        rows = SpaceChange.objects.select_for_update(no_key=True, of=("self",)).select_related("from_space", "to_space__embedding_model")
        row = rows.filter(id=part.change.id, lease_token=part.lease, state__in=SpaceChange.OPEN).first()
        if row is None:
            raise ChangeLost("This change of the embedding model is not under way any more.")
        row.lease_until = timezone.now() + timedelta(seconds=max(settings.ENV.lease_seconds, longest + CALL_MARGIN))
        row.save(update_fields=["lease_until"])
        yield row
