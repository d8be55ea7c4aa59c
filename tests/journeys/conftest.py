"""One fleet for all journeys, on a database and a Redis number of its own."""

import os
from collections.abc import Iterator

import pytest
from django.db import connections

from tests.client import Client
from tests.fleet import QUICK, Fleet, free_port
from tests.installation import manage, with_database

DATABASE = "lectern_journeys"


@pytest.fixture(scope="session")
def fleet(tmp_path_factory, django_db_blocker) -> Iterator[Fleet]:
    with django_db_blocker.unblock():
        owner = connections["owner"]
        with owner.cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{DATABASE}" WITH (FORCE)')
            cursor.execute(f'CREATE DATABASE "{DATABASE}"')
        owner.close()
    environment = {
        **QUICK,
        "DATABASE_URL": with_database(os.environ["DATABASE_URL"], DATABASE),
        "DATABASE_OWNER_URL": with_database(os.environ["DATABASE_OWNER_URL"], DATABASE),
        "REDIS_URL": f"{os.environ['REDIS_URL'].rpartition('/')[0]}/1",
        "LECTERN_HOME": str(tmp_path_factory.mktemp("home")),
        "LECTERN_ALLOWED_PRIVATE_NETWORKS": "127.0.0.1/32:*",
        "LECTERN_EMBED_THREADS": "1",
    }
    fleet = Fleet(environment, tmp_path_factory.mktemp("logs"), free_port())
    manage(environment, "migrate", "--database", "owner", "--verbosity", "0")
    manage(environment, "bootstrap")
    fleet.start()
    try:
        fleet.wait_ready()
        yield fleet
    finally:
        fleet.stop()


@pytest.fixture(scope="session")
def client(fleet: Fleet) -> Iterator[Client]:
    client = Client(fleet.url, manage(fleet.environment, "create_api_key", "journeys", "--role", "admin"))
    yield client
    client.http.close()


@pytest.fixture(autouse=True)
def _whole_fleet(fleet: Fleet) -> None:
    """What an earlier journey killed is up again."""
    fleet.start()
