"""A site lives through bad days while it is crawled, and what answers is what may answer. Longer and by chance: `make soak`."""

import random

import pytest

from tests.benchmarks.soak import site_histories
from tests.benchmarks.soak.ground import Figures, Ground
from tests.benchmarks.soak.site_hands import FleetHands, configuration
from tests.benchmarks.soak.site_histories import TIMEOUT_SECONDS, SiteHistory
from tests.benchmarks.soak.site_life import START, Life
from tests.benchmarks.soak.site_truth import Kind
from tests.benchmarks.soak.texts import Author
from tests.benchmarks.soak.websites import Website
from tests.servers.site import Site

pytestmark = pytest.mark.journey


def test_a_deleted_page_goes_after_two_runs_that_saw_the_site_and_nothing_else_goes(fleet, client):
    """A worker dies in the first, a maintenance page and a rename stand between them, a purge comes before the second."""
    figures = Figures.of("sites", *site_histories.KEYS)
    ground, chance = Ground(fleet, client, fleet.environment), random.Random(4)
    with Site() as server:
        life = Life(Author(chance), chance)
        life.begin(9)
        site = Website(server, life, chance)
        site.serve()
        document = configuration(server.url(START), timeout=TIMEOUT_SECONDS) | {"embedding_model": ground.register_model()}
        history = SiteHistory(figures, chance, site, FleetHands.make(ground, figures, document))
        history.run("clear")
        life.delete()
        (deleted,) = life.of(Kind.GONE)
        assert deleted in history.answers.answering
        site.serve()
        history.run("clear", crash=("main",))
        history.rename()
        history.run("maintenance")
        assert deleted in history.answers.answering
        history.purge()
        history.run("clear")
        assert set(history.answers.answering) == set(life.nodes) - {deleted}
    assert figures.is_clean, "\n".join(figures.told)
