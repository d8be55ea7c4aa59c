"""One fleet for all journeys, on a database and a Redis number of its own; root runs it as an ordinary user, as a container does."""

import os
import pwd
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.soak.ground import Bounds, Figures, Ground
from tests.client import Client
from tests.fleet import ROOT, Fleet, _inherited, free_port
from tests.installation import manage, on_tests_services
from tests.journeys.whole import knowledge_base_on
from tests.servers.openai_server import ScriptedServer

# Root's interpreter may lie where nobody else can enter; this one right stands for an environment of the user's own.
AS_NOBODY = (
    "setpriv",
    "--reuid=nobody",
    "--regid=nogroup",
    "--clear-groups",
    "--inh-caps=+dac_read_search",
    "--ambient-caps=+dac_read_search",
)
SEED = 20


@pytest.fixture(scope="session")
def fleet(tmp_path_factory) -> Iterator[Fleet]:
    home = tmp_path_factory.mktemp("home")
    prefix = AS_NOBODY if os.geteuid() == 0 and shutil.which("setpriv") else ()
    if prefix:
        _give_to_nobody(home)
    environment = on_tests_services("lectern_journeys", redis=1, home=home)
    fleet = Fleet(environment, tmp_path_factory.mktemp("logs"), free_port(), prefix=prefix)
    _migrate(fleet)
    fleet.start()
    try:
        fleet.wait_ready()
        yield fleet
    finally:
        fleet.stop()


def _migrate(fleet: Fleet) -> None:
    command = [*fleet.prefix, sys.executable, "-m", "config.roles", "migrate"]
    done = subprocess.run(command, cwd=ROOT, env={**_inherited(), **fleet.environment}, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-2000:]


def _give_to_nobody(home: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    for folder in home.parents[:2]:
        folder.chmod(0o755)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)


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


@pytest.fixture
def run_slice(fleet: Fleet, client: Client) -> Callable[..., Figures]:
    """Run so much of a soak; fails with what it found where a figure that must be 0 is not."""

    def run(module: Any, *, rounds: int, seconds: float = 15, seed: int = SEED, **options: Any) -> Figures:
        figures = Figures.of(module.__name__.rpartition(".")[2], *module.KEYS)
        module.soak(Ground(fleet, client, fleet.environment), figures, Bounds(rounds, seconds), random.Random(seed), **options)
        assert figures.is_clean, "\n".join(figures.told[:20])
        assert figures.rounds
        return figures

    return run
