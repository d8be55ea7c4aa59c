"""Whom a task serves: raw SQL in a real worker."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection

from config import queues
from config.redis import redis_client
from ingestion.models import IngestionRun
from ingestion.services.runs import start_run
from tests.databases import with_database
from tests.fleet import ROOT, wait_for


@pytest.fixture
def worker() -> Iterator[None]:
    """A real one, with one thread for all of its tasks."""
    name = connection.settings_dict["NAME"]
    urls = {key: with_database(os.environ[key], name) for key in ("DATABASE_URL", "DATABASE_OWNER_URL")}
    environment = {**os.environ, **urls, "REDIS_URL": settings.REDIS_URL, "PYTHONPATH": str(ROOT)}
    command = ["celery", "-A", "config", "worker", "-I", "tests.servers.looking", "-Q", "default", "-P", "threads", "-c", "1"]
    process = subprocess.Popen([sys.executable, "-m", *command, "--without-gossip", "--without-mingle"], cwd=ROOT, env=environment)
    yield
    process.terminate()
    process.wait(20)


def told(count: int) -> list[dict]:
    wait_for(lambda: redis_client().llen("seen") >= count, seconds=60, what="the worker's words")
    return [json.loads(line) for line in redis_client().lrange("seen", 0, -1)]


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_raw_sql_in_a_task_and_in_a_slice_sees_whom_it_serves(sources, organization, other_organization, worker):
    runs = [start_run(sources[name]) for name in ("Acme", "Rival")]
    IngestionRun.objects.update(listed_at=runs[0].created_at)
    queues.wake("tests.look", "first", queue="default")
    for run in runs:
        queues.wake("ingestion.work", "publish", str(run.id), f"{run.id}:{uuid4().hex}", queue="default")
    queues.wake("tests.look_at_all", "all", queue="default")
    queues.wake("tests.look", "last", queue="default")
    by_name = {entry["name"]: entry for entry in told(5)}
    expected = {
        "first": [],
        str(runs[0].id): [organization.id],
        str(runs[1].id): [other_organization.id],
        "all": [organization.id, other_organization.id],
        "last": [],
    }
    for name, ids in expected.items():
        entry, wanted = by_name[name], sorted(map(str, ids))
        assert entry["role"] == ["lectern_app", False]
        assert entry["alone"] == entry["in a transaction"] == dict.fromkeys(entry["alone"], wanted), name
        assert entry["written"] == wanted
