"""One fleet for all journeys, on a database and a Redis number of its own."""

from collections.abc import Iterator

import pytest

from tests.client import Client
from tests.fleet import Fleet
from tests.installation import manage, on_tests_services, started_fleet
from tests.journeys.whole import knowledge_base_on
from tests.servers.openai_server import ScriptedServer


@pytest.fixture(scope="session")
def fleet(tmp_path_factory) -> Iterator[Fleet]:
    environment = on_tests_services("lectern_journeys", redis=1, home=tmp_path_factory.mktemp("home"))
    with started_fleet(environment, tmp_path_factory.mktemp("logs")) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def client(fleet: Fleet) -> Iterator[Client]:
    client = Client(fleet.url, manage(fleet.environment, "create_api_key", "journeys", "--role", "admin", "--skip-checks"))
    yield client
    client.http.close()


@pytest.fixture(autouse=True)
def _whole_fleet(fleet: Fleet) -> None:
    """What an earlier journey killed is up again."""
    fleet.start()


@pytest.fixture
def provider() -> Iterator[ScriptedServer]:
    """Slow enough that a kill falls into a call."""
    with ScriptedServer(dimension=384, delay=0.3) as server:
        yield server


@pytest.fixture
def scripted(client: Client, provider: ScriptedServer) -> tuple[str, str]:
    """A knowledge base that is embedded by the provider, and its source."""
    return knowledge_base_on(client, provider)
