"""Databases of a test run: copies of one that was migrated once. Migrating each anew cost a minute of the processors."""

import fcntl
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parent.parent
_NAME = re.compile(r"(?<=/)[^/?]+(?=\?|$)")
_TEMPLATE = "lectern_template_"


def with_database(url: str, name: str) -> str:
    return _NAME.sub(name, url, count=1)


def create_database(name: str) -> None:
    """An empty database with every table, owned as in production; one of this name that is there goes first."""
    with _alone() as connection:
        template = _TEMPLATE + os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:12]
        made = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [template]).fetchone()
        if not made:
            _drop_old(connection)
            _migrate(connection, template)
        _drop(connection, name)
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')


@contextmanager
def _alone() -> Iterator[psycopg.Connection]:
    """One process of the run at a time: a template in use cannot be copied."""
    with open(Path(os.environ["LECTERN_HOME"]) / "databases.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as connection:
            yield connection


def _drop_old(connection: psycopg.Connection) -> None:
    """What earlier runs left."""
    found = connection.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [_TEMPLATE]).fetchall()
    for (name,) in found:
        _drop(connection, name)


def _drop(connection: psycopg.Connection, name: str) -> None:
    for attempt in range(20):
        try:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            return
        except psycopg.errors.InsufficientPrivilege:  # an autovacuum worker is in it, which only a superuser may end
            if attempt == 19:
                raise
            time.sleep(0.5)


def _migrate(connection: psycopg.Connection, name: str) -> None:
    unfinished = f"{name}_unfinished"  # a run that is stopped here leaves nothing that looks whole
    _drop(connection, unfinished)
    connection.execute(f'CREATE DATABASE "{unfinished}"')
    urls = {key: with_database(os.environ[key], unfinished) for key in ("DATABASE_URL", "DATABASE_OWNER_URL")}
    command = [sys.executable, "manage.py", "migrate", "--database", "owner", "--verbosity", "0"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **urls}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    connection.execute(f'ALTER DATABASE "{unfinished}" RENAME TO "{name}"')
