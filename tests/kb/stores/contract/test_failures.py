"""A failing store is an error that says what happened, never "nothing found". Of stores that are reached by HTTP."""

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from config.addresses import AddressRefused
from kb.stores import rest
from kb.stores.base import Place, Point, StoreError, StoreRefused, StoreUnavailable, VectorQuery
from kb.stores.opening import open_store, store_kinds
from tests.kb.stores.contract.ground import DIMENSION, unit

GARBAGE = b"<html>Welcome to nginx</html>"


@pytest.fixture
def reached(peer):
    if peer.elsewhere is None:
        pytest.skip("reached by no network")
    return peer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(self.server.delay)
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

    def log_message(self, *_: object) -> None:
        pass


class Stubborn(ThreadingHTTPServer):
    """Answers everything alike."""

    daemon_threads = True
    status, body, delay = 200, b"{}", 0.0

    def handle_error(self, *_: object) -> None:
        """A client that hung up is what is tested."""


@pytest.fixture
def wire():
    server = Stubborn(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def place(shelf):
    return Place(shelf.organization, shelf.id, shelf.space)


def every_call(store, place):
    """The three things that are asked of a store."""
    document = place.knowledge_base
    yield "add", lambda: store.add(place, [Point(1, document, unit(1))])
    yield "remove", lambda: store.remove(place, [1])
    yield "remove all", lambda: store.remove(place, None)
    yield "search", lambda: store.search(VectorQuery(place.organization, [place.knowledge_base], place.space, unit(1), 5))
    yield "list", lambda: store.chunks_after(place, 0, 10)


def failures(store, place) -> dict[str, StoreError]:
    found = {}
    for name, call in every_call(store, place):
        with pytest.raises(StoreError) as caught:
            call()
        found[name] = caught.value
    return found


def test_nobody_listens(reached, place):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for error in failures(open_store(reached.elsewhere("127.0.0.1", port)), place).values():
        assert isinstance(error, StoreUnavailable)
        assert f":{port}" in error.message
        assert "cannot be reached" in error.message


def test_it_is_late(reached, place, wire, monkeypatch):
    monkeypatch.setattr(rest, "SEARCH_DEADLINE", 0.4)
    monkeypatch.setattr(rest, "WRITE_DEADLINE", 0.4)
    wire.delay = 3.0
    store = open_store(reached.elsewhere("127.0.0.1", wire.server_port))
    for name, call in every_call(store, place):
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"in time|deadline"):
            call()
        assert time.monotonic() - started < 2, name


@pytest.mark.parametrize("status", [401, 403])
def test_the_key_is_refused(reached, place, wire, status):
    wire.status, wire.body = status, b'{"error": "no"}'
    for error in failures(open_store(reached.elsewhere("127.0.0.1", wire.server_port)), place).values():
        assert isinstance(error, StoreRefused)
        assert "Check its credential" in error.message


@pytest.mark.parametrize("status", [429, 500, 503])
def test_it_fails(reached, place, wire, status):
    wire.status = status
    for error in failures(open_store(reached.elsewhere("127.0.0.1", wire.server_port)), place).values():
        assert isinstance(error, StoreUnavailable)
        assert str(status) in error.message


@pytest.mark.parametrize("body", [GARBAGE, b"[]", b"null", b"7", b'{"result": 5}', b'{"unexpected": {"result": []}}'])
def test_something_else_answers(reached, place, wire, body):
    wire.body = body
    store = open_store(reached.elsewhere("127.0.0.1", wire.server_port))
    for name, call in every_call(store, place):
        if name in ("search", "list", "add") or body == GARBAGE:
            with pytest.raises(StoreRefused, match="cannot be read"):
                call()


def test_the_collection_holds_vectors_of_another_length(reached, store, place, shelf):
    place.space.pk += 55  # a space of its own: its collection is left behind with the peer
    store.add(place, [Point(1, place.knowledge_base, unit(1))])
    place.space.dimension = 384
    wider = np.ones(384, dtype=np.float32)
    with pytest.raises(StoreRefused, match=r"256|dimension"):
        store.add(place, [Point(2, place.knowledge_base, wider)])
    with pytest.raises(StoreRefused, match=r"256|dimension"):
        store.search(VectorQuery(place.organization, [place.knowledge_base], place.space, wider, 5))
    assert DIMENSION == 256


def test_a_private_address_needs_the_operator(reached, place, settings):
    settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": ()})
    store = reached.elsewhere("127.0.0.1", 9)
    opened = store_kinds().load(store.type).open(store)  # not one that was opened under other rules
    for error in failures(opened, place).values():
        assert isinstance(error, StoreRefused)
        assert isinstance(error.__cause__, AddressRefused)
        assert "LECTERN_ALLOWED_PRIVATE_NETWORKS" in error.message
