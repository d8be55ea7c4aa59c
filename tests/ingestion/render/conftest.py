"""A browser for all tests of this folder, and sites for its pages."""

from collections.abc import Callable, Iterator

import pytest

from ingestion.crawl.fetch import Fetcher
from ingestion.render import Rendered, Renderer, RenderLimits, missing
from tests.servers.site import Site

# Long enough for a machine that does ten other things.
PATIENT = RenderLimits(max_seconds=90)

Render = Callable[..., Rendered]


@pytest.fixture(scope="session")
def renderer() -> Iterator[Renderer]:
    if lacking := missing():
        pytest.skip(lacking)
    with Renderer() as renderer:
        yield renderer


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def fetcher(site: Site) -> Iterator[Fetcher]:
    fetcher = Fetcher(user_agent="Lectern/test", timeout_seconds=5, allowed=site.allowed, resolver=site.resolver)
    yield fetcher
    fetcher.close()


@pytest.fixture
def render(renderer: Renderer, site: Site, fetcher: Fetcher) -> Render:
    def render(path: str, *, limits: RenderLimits = PATIENT, by: Renderer = renderer) -> Rendered:
        return by.render(site.url(path), ask=fetcher.get, user_agent="Lectern/test", limits=limits)

    return render
