"""Watchers of a run share what is seen of it."""

import threading
import time
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.api import events, watching
from ingestion.api.watching import Watching
from kb.access import actor_for_user

RUN = uuid4()


def test_of_many_who_ask_at_once_one_looks():
    shared, looks = Watching(), []

    def look() -> int:
        looks.append(1)
        time.sleep(0.05)
        return len(looks)

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(shared.seen_of(RUN, look, kept=5.0))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found, len(looks)) == ([1] * 8, 1)


def test_a_cheap_look_is_repeated_when_its_time_is_over_and_a_dear_one_more_rarely():
    shared, looks = Watching(), []
    for _ in range(2):
        shared.seen_of(RUN, lambda: looks.append(1) or len(looks), kept=0.0)
    assert len(looks) == 2
    for _ in range(2):
        shared.seen_of(RUN, lambda: time.sleep(2 * watching.CHEAP_SECONDS) or looks.append(1) or len(looks), kept=0.0)
    assert len(looks) == 3


def test_what_is_remembered_is_bounded():
    shared = Watching()
    for _ in range(watching.RUNS_REMEMBERED + 10):
        shared.seen_of(uuid4(), lambda: 1, kept=5.0)
    assert len(shared._seen) == watching.RUNS_REMEMBERED


@pytest.mark.django_db
def test_a_second_watcher_asks_for_the_row_alone_and_sees_the_end_at_once(editor, alice, source_url):
    run_id = editor.post(f"{source_url}/run").json()["run_id"]
    actor = actor_for_user(alice)
    first = events.look(actor, run_id)
    with CaptureQueriesContext(connection) as asked:
        assert events.look(actor, run_id) == first
    assert len(asked) <= 2
    editor.post(f"/api/v1/runs/{run_id}/cancel")
    assert events.look(actor, run_id).finished
