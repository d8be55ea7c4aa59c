"""Random histories of a site, their runs worked in this process: what answers is what may answer. With a fleet and kills: `make soak`."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from config.addresses import parse_networks
from ingestion.services import removals, runs
from kb import services, versioning
from kb.models import Chunk, Document, KnowledgeBase, Source
from tests.benchmarks.soak.ground import Figures
from tests.benchmarks.soak.site_hands import Standing, configuration
from tests.benchmarks.soak.site_histories import KEYS, SiteHistory
from tests.benchmarks.soak.site_life import START, Life
from tests.benchmarks.soak.texts import Author, Text, marks
from tests.benchmarks.soak.websites import Website
from tests.ingestion.web.conftest import advance
from tests.servers.site import Site

STAGES = ("crawl", "extract", "embed", "publish", "finish")
SECONDS = 90
pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])


@dataclass
class OwnHands:
    """A knowledge base in this process's database."""

    actor: Any
    knowledge_base: KnowledgeBase
    document: dict[str, Any]

    @property
    def source(self) -> Source:
        return Source.objects.get(knowledge_base=self.knowledge_base, kind="web")

    def publish(self, document: dict[str, Any]) -> None:
        number = KnowledgeBase.objects.get(id=self.knowledge_base.id).current.number
        self.document = versioning.publish(self.knowledge_base, document=document, expected=number, actor=self.actor).document

    def purge(self, *, reembed: bool) -> None:
        runs.purge_source(self.source, reembed=reembed)

    def run(self, *, begun: Callable[[], bool], cancel: bool, crash: Sequence[str]) -> Mapping[str, Any] | None:
        run = runs.start_run(self.source)
        if cancel:
            run = advance(run, *STAGES[:-1])
            runs.cancel_run(run)
        ended = time.monotonic() + SECONDS
        while run.is_open and time.monotonic() < ended:
            started = time.monotonic()
            run = advance(run, *STAGES)
            time.sleep(max(0.0, 0.1 - (time.monotonic() - started)))  # what a site puts off is asked for a moment later
        if run.is_open:
            return None
        return {"id": run.id, "status": run.status, "stop_reason": run.stop_reason, "error": run.error}

    def answer_brake(self, run_id: str, *, confirm: bool) -> None:
        run = self.source.runs.get(id=run_id)
        removals.confirm_removals(run, unasked=True) if confirm else removals.reject_removals(run)

    def look(self) -> Iterable[Standing]:
        for document in Document.objects.filter(source=self.source, chunk_count__gt=0):
            texts = Chunk.objects.filter(document=document).values_list("text", flat=True)
            said = Counter(mark for text in texts for mark in marks(text))
            yield Standing(document.url, said, f"missed {document.missed_runs}, error {document.last_error!r}")

    def check(self, answering: Mapping[str, Text], gone: list[Text], chance: random.Random) -> None:
        """No chunk stands without its document's count."""
        for document in Document.objects.filter(source=self.source):
            assert document.chunks.count() == document.chunk_count


@pytest.fixture
def loopback(web, settings) -> None:
    """Any number of sites, on whatever ports."""
    settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": parse_networks("127.0.0.1/32:*")})


@effort(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(chance=st.randoms(use_true_random=False))
def test_random_histories(chance, loopback, actor):
    assert live(chance, actor, runs=3) == []


def live(chance, actor, *, runs: int, pages: int = 8) -> list[str]:
    figures = Figures.of("site_histories", *KEYS)
    with Site() as server:
        site = Website(server, Life(Author(random.Random(0)), chance), chance, patient=False)
        site.life.begin(pages)
        site.serve()
        document = configuration(server.url(START), timeout=3, tombstone_after_missed_runs=chance.choice((1, 2, 2, 3)))
        made = services.create_knowledge_base(actor, document=document)
        history = SiteHistory(figures, chance, site, OwnHands(actor, made, made.current.document))
        history.run("clear")
        for _ in range(runs - 1):
            history.live()
            history.run(ends=chance.choices(("", "limit", "cancel"), (6, 1, 1))[0])
    return figures.told
