import json
import os
import signal
import socket
import threading
import time

import pytest
import redis
from celery import Celery
from django.test import override_settings

import config.celery
from config import queues
from config.env import environment
from config.errors import Unavailable
from config.queues import BULK, CRAWL, DEFAULT, EXTRACT, INTERACTIVE, QUEUES, VISIBILITY_TIMEOUT, celery_settings, wake
from config.redis import open_redis, redis_client, redis_errors


def application(url):
    app = Celery("test", set_as_current=False)
    app.conf.update(celery_settings(url))
    return app


@pytest.fixture
def app(valkey, monkeypatch):
    made = application(valkey.url)
    monkeypatch.setattr(config.celery, "app", made)
    yield made
    made.close()


def test_a_message_carries_ids_an_expiry_and_its_priority(valkey, app):
    wake("kb.tasks.fold", "id-1", 7, queue=CRAWL, priority=BULK)
    wake("kb.tasks.fold", "id-2", queue=CRAWL, priority=INTERACTIVE)
    client = redis.Redis(port=valkey.port)
    found = {key: client.lrange(key, 0, -1) for key in client.scan_iter("crawl*")}
    assert len(found) == 2, "each priority has a list of its own"
    (message,) = (json.loads(raw[0]) for key, raw in found.items() if key == b"crawl")
    assert message["headers"]["expires"]
    assert message["headers"]["ignore_result"] is True
    assert message["properties"]["priority"] == INTERACTIVE
    client.close()


def test_a_worker_takes_interactive_messages_first(valkey, app):
    done, ended = [], threading.Event()

    @app.task(name="probe")
    def probe(name):
        done.append(name)
        if len(done) == 3:
            ended.set()

    for name, priority in (("bulk", BULK), ("normal", queues.NORMAL), ("interactive", INTERACTIVE)):
        wake("probe", name, queue=EXTRACT, priority=priority)
    from celery.contrib.testing.worker import start_worker

    with start_worker(app, pool="solo", queues=[EXTRACT], perform_ping_check=False, shutdown_timeout=10):
        assert ended.wait(15)
    assert done == ["interactive", "normal", "bulk"]


@pytest.mark.parametrize("value", [{"id": 1}, ["a"], None, b"x", 1.5, True])
def test_only_ids_travel(value):
    with pytest.raises(TypeError, match="carries no work"):
        wake("probe", value, queue=DEFAULT)


def test_an_unknown_queue_is_refused():
    with pytest.raises(ValueError, match="crawl, extract, recognize, embed, default"):
        wake("probe", queue="celery")


def test_a_dead_broker_is_told_within_two_seconds(valkey, app):
    wake("probe", 1, queue=DEFAULT)
    valkey.stop()
    for _ in range(2):
        started = time.monotonic()
        with pytest.raises(Unavailable, match="broker"):
            wake("probe", 1, queue=DEFAULT)
        assert time.monotonic() - started < 2.5
    valkey.start()
    wake("probe", 1, queue=DEFAULT)


def test_a_broker_that_was_never_there_is_told_too(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(config.celery, "app", application(f"redis://127.0.0.1:{taken.getsockname()[1]}/0"))
        started = time.monotonic()
        with pytest.raises(Unavailable):
            wake("probe", 1, queue=DEFAULT)
        assert time.monotonic() - started < 2.5


def test_a_hanging_broker_does_not_hang_the_sender(valkey, app):
    wake("probe", 1, queue=DEFAULT)
    os.kill(valkey.process.pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        with pytest.raises(Unavailable):
            wake("probe", 1, queue=DEFAULT)
        assert time.monotonic() - started < 5
    finally:
        os.kill(valkey.process.pid, signal.SIGCONT)


def test_the_settings_keep_the_promises(variables):
    found = celery_settings("redis://h:1/2")
    assert (found["task_ignore_result"], found["result_backend"], found["accept_content"]) == (True, None, ["json"])
    assert (found["task_acks_late"], found["worker_prefetch_multiplier"]) == (False, 1)
    assert tuple(queue.name for queue in found["task_queues"]) == QUEUES
    assert 2 * max(environment().slice_seconds, environment().lease_seconds) < VISIBILITY_TIMEOUT
    assert celery_settings("unix:///run/valkey.sock")["broker_url"] == "redis+socket:///run/valkey.sock"
    known = application("redis://h").conf
    assert [name for name in found if name not in known] == []


def test_one_client_a_process_and_a_fork_gets_its_own(valkey):
    with override_settings(REDIS_URL=valkey.url):
        client = redis_client()
        assert client is redis_client()
        client.set("a", "1")
        assert client.get("a") == b"1"
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, b"y" if redis_client() is not client and redis_client().get("a") == b"1" else b"n")
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reading, 1) == b"y"
        os.close(reading)
        os.close(writing)
        assert client.get("a") == b"1"
        client.close()


def test_a_redis_that_hangs_or_is_gone_is_unavailable_soon(valkey):
    client = open_redis(valkey.url, socket_timeout=0.3)
    assert client.ping()
    os.kill(valkey.process.pid, signal.SIGSTOP)
    started = time.monotonic()
    with pytest.raises(Unavailable, match="REDIS_URL"), redis_errors():
        client.get("a")
    os.kill(valkey.process.pid, signal.SIGCONT)
    valkey.stop()
    with pytest.raises(Unavailable), redis_errors():
        client.get("a")
    assert time.monotonic() - started < 4
    client.close()
