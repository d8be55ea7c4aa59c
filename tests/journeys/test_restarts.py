"""Postgres goes down hard in the middle of a run and comes back: the run finishes, nothing is lost, doubled or failed."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded import running, start_services
from config.embedded.processes import is_running
from tests.fleet import QUICK, wait_for
from tests.installation import Installation, installation
from tests.journeys.whole import BATCH, check_whole, files, knowledge_base_on

pytestmark = [pytest.mark.journey, pytest.mark.soak]


@pytest.fixture(scope="module")
def apart() -> Iterator[Installation]:
    """An installation on servers of its own, because one of them goes down."""
    with installation(LECTERN_EMBED_THREADS="1", **QUICK) as installed:
        yield installed
        installed.client.http.close()


def restart_postgres(home: Path) -> None:
    """An immediate shutdown, as when the machine goes: every connection breaks, and the log is replayed at the next start."""
    pid = running(home).postgres_pid
    os.kill(pid, signal.SIGQUIT)
    wait_for(lambda: not is_running(pid, "postgres"), seconds=30, what="the end of Postgres")
    start_services(home=home)


def test_a_restarted_postgres_fails_no_document(apart: Installation, provider):
    client, fleet = apart.client, apart.fleet
    kb = knowledge_base_on(client, provider)
    client.upload(*kb, files())
    run = client.start(*kb)
    restarts = 0
    for batches in (1, 3):
        wait_for(lambda batches=batches: len(provider.paid_texts()) >= batches * BATCH, seconds=60, what="a batch")
        restart_postgres(Path(apart.environment["LECTERN_HOME"]))
        restarts += 1
    check_whole(client, kb, client.finish(run, seconds=180), provider, kills=restarts)
    assert all(fleet.is_alive(name) for name in fleet.processes), "a process did not outlive the restart"
    verdicts = client.call("GET", f"/runs/{run}/documents?limit=100")["items"]
    assert {(verdict["verdict"], verdict["reason"]) for verdict in verdicts} == {("ingested", None)}
