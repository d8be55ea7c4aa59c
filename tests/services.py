"""Started before Django's settings are read (`-p tests.services`): embedded Postgres and Valkey in a home of the tests' own.

DATABASE_URL, DATABASE_OWNER_URL and REDIS_URL, where set, are used instead.
"""

import os
import tempfile
from pathlib import Path
from uuid import uuid4

import pytest

HOME = Path(os.environ.setdefault("LECTERN_HOME", str(Path(tempfile.gettempdir()) / f"lectern-tests-{os.getuid()}")))

from config.embedded import secret_key, start_services, stop_services  # noqa: E402 - the home is chosen first

# One pair of servers for every process of a test run: the first one starts them, the session's end stops them.
GIVEN = bool(os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL"))
if not GIVEN:
    services = start_services(home=HOME, test_mode=True)
    os.environ.update(DATABASE_URL=services.database_url, DATABASE_OWNER_URL=services.owner_url, REDIS_URL=services.redis_url)
os.environ.setdefault("LECTERN_SECRET_KEY", secret_key(HOME) or uuid4().hex * 2)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not GIVEN and not os.environ.get("PYTEST_XDIST_WORKER"):
        stop_services(HOME)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """A file of tests stays in one process; all journeys share a fleet whose members they kill."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "tests/journeys" if file.startswith("tests/journeys") else file

    return ByFile(config, log)
