"""A throw-away installation for a benchmark: services in a temporary home, tables, first rows, a fleet, a client."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.client import Client
from tests.databases import create_database, with_database
from tests.fleet import QUICK, ROOT, Fleet, _inherited, free_port


@dataclass(frozen=True)
class Installation:
    fleet: Fleet
    client: Client
    environment: Mapping[str, str]

    def manage(self, *arguments: str) -> str:
        return manage(self.environment, *arguments)


def manage(environment: Mapping[str, str], *arguments: str) -> str:
    """Output of a `manage.py` command; AssertionError with its last words when it fails."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**_inherited(), **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def on_tests_services(name: str, *, redis: int, home: Path) -> dict[str, str]:
    """The environment of a fleet on the servers of the test run, with a database and a Redis number of its own."""
    create_database(name)
    return {
        **QUICK,
        "DATABASE_URL": with_database(os.environ["DATABASE_URL"], name),
        "DATABASE_OWNER_URL": with_database(os.environ["DATABASE_OWNER_URL"], name),
        "REDIS_URL": f"{os.environ['REDIS_URL'].rpartition('/')[0]}/{redis}",
        "LECTERN_HOME": str(home),
        "LECTERN_ALLOWED_PRIVATE_NETWORKS": "127.0.0.1/32:*",
        "LECTERN_EMBED_THREADS": "1",
    }


@contextmanager
def installation(*, roles: tuple[str, ...] = (), home: Path | None = None, **settings: str) -> Iterator[Installation]:
    """Everything up on a home of its own; what was made is removed at the end unless `home` is given."""
    from config.embedded import secret_key, start_services, stop_services

    folder = home or Path(tempfile.mkdtemp(prefix="lectern-bench-"))
    folder.chmod(0o755)
    services = start_services(home=folder)
    environment = {
        "LECTERN_HOME": str(folder),
        "DATABASE_URL": services.database_url,
        "DATABASE_OWNER_URL": services.owner_url,
        "REDIS_URL": services.redis_url,
        "LECTERN_SECRET_KEY": secret_key(folder) or "",
        "LECTERN_ALLOWED_PRIVATE_NETWORKS": "127.0.0.1/32:*",
        **settings,
    }
    fleet = Fleet(environment, folder / "log", free_port())
    try:
        manage(environment, "migrate", "--database", "owner", "--verbosity", "0")
        manage(environment, "bootstrap", "--skip-checks")
        key = manage(environment, "create_api_key", "bench", "--role", "admin", "--skip-checks")
        fleet.start(*roles)
        if not roles:
            fleet.wait_ready()
        yield Installation(fleet, Client(fleet.url, key), environment)
    finally:
        fleet.stop()
        stop_services(folder)
        if home is None:
            shutil.rmtree(folder, ignore_errors=True)


def use_settings(environment: Mapping[str, str]) -> None:
    """Make this process one of the installation's, for looks into its rows."""
    os.environ.update(environment)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()

    from config.tenancy import serve_everyone

    serve_everyone()
