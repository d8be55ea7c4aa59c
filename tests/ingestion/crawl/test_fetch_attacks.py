"""What a server may do to a GET: break off, trickle, flood, inflate, and lead to addresses that are not its own."""

import gzip
import socket
import time
import tracemalloc
from functools import partial

import brotli
import pytest

from tests.servers.h2_server import serving_h2
from tests.servers.wire_server import page, serving


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("br", partial(brotli.compress, quality=5))])
def test_a_bomb_stops_at_the_cap_in_small_memory(fetcher_of, encoding, pack):
    packed = pack(bytes(60_000_000))
    with serving({"/": page(packed, content_encoding=encoding)}) as server:
        fetcher = fetcher_of(timeout_seconds=3)
        fetcher.get(server.url(), max_bytes=1000)
        tracemalloc.start()
        answer = fetcher.get(server.url(), max_bytes=1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (len(answer.body), answer.cut) == (1_000_000, True)
    assert peak < 8_000_000


def endless(start: bytes, more: bytes, pause: float = 0.0):
    def script(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(more)
            time.sleep(pause)

    return script


ATTACKS = {
    "/slow-headers": (endless(b"HTTP/1.1 200 OK\r\nx: ", b"x", 0.05), "in time"),
    "/slow-body": (endless(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n", b"x", 0.05), "in time"),
    "/silent": (lambda connection: time.sleep(3), "in time"),
    "/silent-body": (lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n") or time.sleep(3), "in time"),
    "/header-flood": (endless(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 1000), "cannot be read"),
    "/long-header": (endless(b"HTTP/1.1 200 OK\r\nx: ", b"y" * 10_000), "cannot be read"),
    "/endless-1xx": (endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100), "cannot be read"),
    "/garbage": (lambda connection: connection.sendall(b"\0\1\2 this is not HTTP\r\n\r\n"), "cannot be read"),
    "/two-lengths": (lambda connection: connection.sendall(page(content_length="5\r\ncontent-length: 6")), "cannot be read"),
    "/nothing": (lambda connection: None, "ended early"),
    "/cut-headers": (lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nx: "), "ended early"),
    "/cut-body": (lambda connection: connection.sendall(page(b"abc", content_length="10")), "ended early"),
    "/cut-chunk": (lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"), "ended early"),
    "/trailer-flood": (endless(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n" * 1000), "cannot be read"),
}


@pytest.mark.parametrize("path", list(ATTACKS))
def test_what_is_no_answer_fails_soon_and_says_why(fetcher_of, failure, path):
    script, expected = ATTACKS[path]
    timeout = 0.3 if expected == "in time" else 5
    started = time.monotonic()
    with serving({path: script}) as server:
        failed = failure(fetcher_of(timeout_seconds=timeout), server.url(path))
    assert time.monotonic() - started < 4 * timeout + 1
    assert failed.reason == "unreachable"
    assert expected in failed.message
    assert server.url(path) in failed.message


def test_an_endless_packed_body_that_says_nothing_ends(fetcher_of, failure):
    empty_blocks = b"\x00\x00\x00\xff\xff" * 10_000
    script = endless(b"HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\n\r\n", empty_blocks)
    with serving({"/": script}) as server:
        failed = failure(fetcher_of(timeout_seconds=2), server.url(), max_bytes=1000)
    assert "more than may be read" in failed.message


def test_a_status_of_its_own_needs_no_whole_text(fetcher_of):
    with serving({"/": lambda connection: connection.sendall(page(b"go", status="410 Gone", content_length="10"))}) as server:
        answer = fetcher_of().get(server.url(), max_bytes=100)
    assert (answer.status, answer.body, answer.cut) == (410, b"go", True)


def test_interim_answers_are_passed_over(fetcher_of):
    with serving({"/": b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 3 + page()}) as server:
        assert fetcher_of().get(server.url(), max_bytes=10).body == b"hello"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:7f00:1]", "[::1]", "localhost", "a.localhost"]
)
def test_no_spelling_of_a_private_address_is_requested(fetcher_of, failure, host):
    with serving({"/": page()}) as server:
        failed = failure(fetcher_of(allowed=()), server.url(host=host))
    assert failed.reason == "address_refused"
    assert "LECTERN_ALLOWED_PRIVATE_NETWORKS" in failed.message
    assert server.connections == 0


def test_a_name_that_resolves_to_a_private_address_is_refused(fetcher_of, failure):
    with serving({"/": page()}) as server:
        for answers in (["127.0.0.1"], ["93.184.215.14", "127.0.0.1"], ["::ffff:10.0.0.1"], ["fd00::1"]):
            fetcher = fetcher_of(allowed=(), resolver=lambda host, port, found=answers: found)
            assert failure(fetcher, server.url(host="kb.test")).reason == "address_refused"
    assert server.connections == 0


def test_a_name_is_resolved_once_a_connection_and_pinned(fetcher_of, failure):
    asked = []

    def rebinding(host, port):
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    with serving({"/": page()}) as server:
        fetcher = fetcher_of(resolver=rebinding)
        for _ in range(2):
            assert fetcher.get(server.url(host="rebind.test"), max_bytes=10).body == b"hello"
        assert asked == ["rebind.test"]
        assert server.seen[0][1]["host"] == f"rebind.test:{server.port}"
        server.drop_connections()
        assert failure(fetcher, server.url(host="rebind.test")).reason == "address_refused"


def test_an_unknown_name_a_slow_name_server_and_a_closed_port_are_unreachable(fetcher_of, failure):
    def unknown(host, port):
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    assert "cannot be resolved" in failure(fetcher_of(resolver=unknown), "http://nowhere.test/").message
    slow = fetcher_of(resolver=lambda host, port: time.sleep(2) or [], timeout_seconds=0.3)
    assert "not resolved in time" in failure(slow, "http://slow.test/").message
    with serving({}) as server:
        pass
    failed = failure(fetcher_of(), server.url("/p?token=secret"))
    assert failed.reason == "unreachable"
    assert "Check that it is up" in failed.message
    assert "secret" not in failed.message


@pytest.mark.parametrize(
    "url", ["", "page", "ftp://kb.test/", "http://", "http://kb.test:port/", "http://kb.test/\r\nx: y", "http://é.test/", "http://[::1/"]
)
def test_what_is_no_address_is_a_bad_url(fetcher_of, failure, url):
    assert failure(fetcher_of(allowed=()), url).reason == "bad_url"


def test_a_certificate_that_is_not_trusted_is_unreachable(fetcher_of, failure, certificate):
    with serving_h2(certificate) as server:
        failed = failure(fetcher_of(resolver=lambda host, port: ["127.0.0.1"]), f"https://kb.test:{server.port}/")
        assert failed.reason == "unreachable"
        assert "certificate" in failed.message
        assert server.seen == []
    with serving({"/": page()}) as server:
        assert failure(fetcher_of(), server.url().replace("http:", "https:")).reason == "unreachable"
