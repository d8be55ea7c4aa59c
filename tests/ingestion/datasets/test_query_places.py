"""Queries of one organization leave places to the others, and who waits is told soon."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from uuid import uuid4

import pytest

from config.errors import TooManyRequests
from ingestion.services.query_places import Places

ACME, OTHER = uuid4(), uuid4()


def test_one_organization_never_takes_every_place():
    places = Places(total=3, each=2, patience=0.1)
    with ExitStack() as held:
        held.enter_context(places.hold(ACME))
        held.enter_context(places.hold(ACME))
        started = time.monotonic()
        with pytest.raises(TooManyRequests, match="of your organization run here"), places.hold(ACME):
            pass
        assert time.monotonic() - started < 2
        with places.hold(OTHER), pytest.raises(TooManyRequests, match="of others"), places.hold(uuid4()):
            pass
        with places.hold(OTHER):  # given back
            pass
    with places.hold(ACME):
        pass


def test_who_waits_gets_the_place_that_comes_free_and_few_wait():
    places = Places(total=2, each=1, patience=5)
    with ThreadPoolExecutor() as pool:
        with places.hold(ACME):
            waits = pool.submit(lambda: places.hold(ACME).__enter__())
            while not places._waiting:
                time.sleep(0.01)
            with pytest.raises(TooManyRequests), places.hold(ACME):
                pass
            assert not waits.done()
        waits.result(timeout=5)
