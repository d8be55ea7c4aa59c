"""Both services of one home, behind one lock."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from config.embedded import postgres as _postgres
from config.embedded import valkey as _valkey
from config.embedded.credentials import Credentials, make_credentials, read_credentials
from config.embedded.failures import ServiceError
from config.embedded.homes import prepare_home

LOCK_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Services:
    """What runs in a home. The URLs carry passwords and are not shown; a service that does not run has None for both."""

    home: Path
    database_url: str | None
    owner_url: str | None
    redis_url: str | None
    postgres_pid: int | None
    valkey_pid: int | None

    def __repr__(self) -> str:
        return f"Services(home={self.home!s}, postgres_pid={self.postgres_pid}, valkey_pid={self.valkey_pid})"

    def environment(self) -> dict[str, str]:
        """The variables that a child process needs to find what runs here."""
        named = {"DATABASE_URL": self.database_url, "DATABASE_OWNER_URL": self.owner_url, "REDIS_URL": self.redis_url}
        return {name: value for name, value in named.items() if value is not None}


def _services(home: Path, credentials: Credentials, database: _postgres.Server | None, broker: _postgres.Server | None) -> Services:
    def database_url(role: str, password: str) -> str | None:
        return None if database is None else f"postgresql://{role}:{quote(password)}@127.0.0.1:{database.port}/lectern"

    return Services(
        home=home,
        database_url=database_url("lectern_app", credentials.app_password),
        owner_url=database_url("lectern_owner", credentials.owner_password),
        redis_url=None if broker is None else f"redis://:{quote(credentials.valkey_password)}@127.0.0.1:{broker.port}/0",
        postgres_pid=database.pid if database else None,
        valkey_pid=broker.pid if broker else None,
    )


@contextlib.contextmanager
def _locked(home: Path) -> Iterator[None]:
    """One start or stop at a time in a home."""
    with open(home / "lock", "w") as file:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ServiceError(f"Another process has been starting or stopping the services in {home} for two minutes.") from None
                time.sleep(0.05)
        yield


def _kept_ports(home: Path) -> dict[str, int]:
    try:
        return {str(name): int(port) for name, port in json.loads((home / "ports.json").read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def start_services(*, home: Path, postgres: bool = True, valkey: bool = True, test_mode: bool = False) -> Services:
    """Start what is wanted and does not run yet; what runs already is adopted. Safe to call from several processes at once.

    `test_mode` trades durability for speed and works only for servers that this call starts.
    """
    home = Path(home).absolute()
    user = prepare_home(home)
    with _locked(home):
        credentials = make_credentials(home)
        ports = _kept_ports(home)
        database = broker = None
        if postgres:
            database = _postgres.start_postgres(home, credentials=credentials, user=user, port=ports.get("postgres"), test_mode=test_mode)
        if valkey:
            broker = _valkey.start_valkey(home, credentials=credentials, user=user, port=ports.get("valkey"))
        ports |= {name: server.port for name, server in (("postgres", database), ("valkey", broker)) if server}
        scratch = home / f".ports.{os.getpid()}"
        scratch.write_text(json.dumps(ports))
        scratch.replace(home / "ports.json")
        return _services(home, credentials, database, broker)


def stop_services(home: Path) -> list[str]:
    """Stop what runs in the home; names what was stopped."""
    home = Path(home).absolute()
    if not home.exists():
        return []
    with _locked(home):
        return [name for name, stop in (("valkey", _valkey.stop_valkey), ("postgres", _postgres.stop_postgres)) if stop(home)]


def running(home: Path) -> Services | None:
    """What runs in the home, or None if nothing does. Reads small files and asks no server; starts nothing."""
    home = Path(home).absolute()
    database, broker = _postgres.find_server(home), _valkey.find_server(home)
    if database is None and broker is None:
        return None
    credentials = read_credentials(home)
    return None if credentials is None else _services(home, credentials, database, broker)
