"""One GET at a time against servers that behave."""

import gzip
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.servers.h2_server import BODY, serving_h2
from tests.servers.wire_server import page, serving


def test_an_answer_is_told_apart_into_what_a_crawl_needs(fetcher_of):
    headers = {"content_type": 'Text/HTML; Charset="ISO-8859-1"', "etag": 'W/"7"', "last_modified": "Wed, 21 Oct 2015 07:28:00 GMT"}
    with serving({"/a?b=%20": page(b"hello", **headers, x_robots_tag="noindex\r\nX-Robots-Tag: nofollow")}) as server:
        answer = fetcher_of().get(server.url("/a?b=%20"), max_bytes=5)
    assert (answer.status, answer.body, answer.cut, answer.url) == (200, b"hello", False, server.url("/a?b=%20"))
    assert (answer.media_type, answer.charset) == ("text/html", "iso-8859-1")
    assert (answer.etag, answer.last_modified) == ('W/"7"', headers["last_modified"])
    assert answer.headers["x-robots-tag"] == "noindex, nofollow"
    assert (answer.location, answer.retry_after) == ("", None)
    assert 0 < answer.seconds < 0.5
    sent = server.seen[0][1]
    assert sent["user-agent"] == "Lectern/1 (+https://kb.test)"
    assert sent["host"] == f"127.0.0.1:{server.port}"
    assert sent["accept"].startswith("text/html")
    assert sent["accept-encoding"] == "gzip, deflate, br, zstd"
    assert not {"cookie", "if-none-match", "if-modified-since", "authorization"} & set(sent)


def test_validators_are_sent_and_a_304_has_no_body(fetcher_of):
    with serving({"/": b'HTTP/1.1 304 Not Modified\r\netag: "8"\r\n\r\n'}) as server:
        fetcher = fetcher_of()
        for _ in range(2):
            answer = fetcher.get(server.url(), max_bytes=10, etag='"7é"', last_modified="Wed, 21 Oct 2015 07:28:00 GMT")
            assert (answer.status, answer.body, answer.etag) == (304, b"", '"8"')
    assert server.seen[0][1]["if-none-match"] == '"7é"'
    assert server.seen[0][1]["if-modified-since"] == "Wed, 21 Oct 2015 07:28:00 GMT"
    assert server.connections == 1


def test_no_cookie_and_no_password_is_sent_on(fetcher_of):
    with serving({"/": page(set_cookie="session=1")}) as server:
        fetcher = fetcher_of()
        for _ in range(2):
            fetcher.get(f"http://user:secret@127.0.0.1:{server.port}/", max_bytes=10)
    assert not {"cookie", "authorization"} & set(server.seen[1][1])


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/next", "{base}/next"),
        ("next?q", "{base}/a/next?q"),
        ("//other.test/x", "http://other.test/x"),
        ("https://é.test/", "https://xn--9ca.test/"),
    ],
)
def test_a_redirect_is_not_followed_and_leads_to_an_absolute_address(fetcher_of, location, expected):
    moved = page(b"moved", status="301 Moved", location=location.encode().decode("latin-1"))
    with serving({"/a/b": moved}) as server:
        answer = fetcher_of().get(server.url("/a/b"), max_bytes=10)
    assert (answer.status, answer.location) == (301, expected.format(base=server.url("")))
    assert [path for path, _ in server.seen] == ["/a/b"]


@pytest.mark.parametrize(("value", "expected"), [("7", 7), ("99999", 3600), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("later", None)])
def test_the_wait_that_a_server_asks_for(fetcher_of, value, expected):
    with serving({"/": page(b"", status="429 Slow Down", retry_after=value)}) as server:
        answer = fetcher_of().get(server.url(), max_bytes=10)
    assert (answer.status, answer.retry_after) == (429, expected)


def test_a_body_over_the_cap_is_cut(fetcher_of):
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"64\r\n" + b"x" * 100 + b"\r\n"
    with serving({"/said": page(b"x" * 5000), "/unsaid": chunked * 1 + chunked[-106:] * 50 + b"0\r\n\r\n"}) as server:
        fetcher = fetcher_of()
        assert fetcher.get(server.url("/said"), max_bytes=5000).cut is False
        announced = fetcher.get(server.url("/said"), max_bytes=4999)
        part = fetcher.get(server.url("/said"), max_bytes=4999, partial=True)
        unsaid = fetcher.get(server.url("/unsaid"), max_bytes=4999)
    assert (announced.body, announced.cut) == (b"", True)
    assert (part.body, part.cut) == (b"x" * 4999, True)
    assert (unsaid.body, unsaid.cut) == (b"x" * 4999, True)


def test_a_packed_page_is_unpacked_and_a_damaged_one_is_no_page(fetcher_of, failure):
    packed = gzip.compress(b"packed" * 100)
    scripts = {"/": page(packed, content_encoding="gzip"), "/cut": page(packed[:-9], content_encoding="gzip")}
    with serving(scripts | {"/gone": page(packed[:-9], status="404 Not Found", content_encoding="gzip")}) as server:
        fetcher = fetcher_of()
        assert fetcher.get(server.url(), max_bytes=600).body == b"packed" * 100
        failed = failure(fetcher, server.url("/cut"))
        assert fetcher.get(server.url("/gone"), max_bytes=600).status == 404
    assert failed.reason == "unreachable"
    assert "damaged gzip" in failed.message


def test_connections_are_kept_and_shared_by_threads(fetcher_of):
    scripts = {f"/{number}": page(b"%d" % number) for number in range(200)}
    with serving(scripts) as server:
        fetcher = fetcher_of(connections=4, timeout_seconds=5)
        with ThreadPoolExecutor(4) as pool:
            bodies = list(pool.map(lambda number: fetcher.get(server.url(f"/{number}"), max_bytes=10).body, range(200)))
    assert bodies == [b"%d" % number for number in range(200)]
    assert server.connections <= 4


def test_a_kept_connection_that_the_server_closed_is_replaced(fetcher_of):
    with serving({"/": page()}) as server:
        fetcher = fetcher_of()
        for _ in range(3):
            assert fetcher.get(server.url(), max_bytes=10).body == b"hello"
            server.drop_connections()
    assert server.connections == 3


def test_bytes_behind_an_answer_are_not_the_next_one(fetcher_of):
    with serving({"/long": page(b"hello and more", content_length="5"), "/next": page(b"next")}) as server:
        fetcher = fetcher_of()
        assert fetcher.get(server.url("/long"), max_bytes=100).body == b"hello"
        assert fetcher.get(server.url("/next"), max_bytes=100).body == b"next"


def test_a_kept_connection_that_closes_on_the_request_is_tried_anew_once(fetcher_of):
    answered = threading.Event()

    def once(connection):
        """Answers, then closes as soon as the next request has come: the client could not have seen it."""
        connection.sendall(page())
        if not answered.is_set():
            answered.set()
            connection.recv(10_000)

    with serving({"/": once}) as server:
        fetcher = fetcher_of()
        for _ in range(2):
            assert fetcher.get(server.url(), max_bytes=10).body == b"hello"
    assert server.connections == 2


def test_http2_is_spoken_where_the_server_does(fetcher_of, certificate):
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    with serving_h2(certificate) as server:
        fetcher = fetcher_of(verify=trusting, resolver=lambda host, port: ["127.0.0.1"], timeout_seconds=2)
        for path in ("/a", "/b", "/c"):
            answer = fetcher.get(f"https://kb.test:{server.port}{path}", max_bytes=100_000, etag='"1"')
            assert (answer.status, answer.body, answer.etag, answer.charset) == (200, BODY, '"2"', "utf-8")
        assert server.connections == 1
        cut = fetcher.get(f"https://kb.test:{server.port}/d", max_bytes=1000)
        assert (cut.body, cut.cut) == (BODY[:1000], True)
        assert fetcher.get(f"https://kb.test:{server.port}/e", max_bytes=100_000).body == BODY
        assert server.connections == 2, "a connection with an unread answer is given up"
    headers = server.seen[0][1]
    assert headers[b":authority"] == b"kb.test:%d" % server.port
    assert headers[b"if-none-match"] == b'"1"'


def test_a_stalled_http2_answer_holds_up_nobody_else(fetcher_of, failure, certificate):
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    with serving_h2(certificate) as server, ThreadPoolExecutor(6) as pool:
        base = f"https://kb.test:{server.port}"
        fetcher = fetcher_of(verify=trusting, resolver=lambda host, port: ["127.0.0.1"], timeout_seconds=1)
        stalled = [pool.submit(failure, fetcher, base + path) for path in ("/stall", "/half", "/bye")]
        read = [pool.submit(fetcher.get, f"{base}/{number}", max_bytes=100_000) for number in range(20)]
        assert all(done.result(5).body == BODY for done in read)
        messages = [done.result(5).message for done in stalled]
    assert [("in time" in message, "ended early" in message) for message in messages] == [(True, False), (True, False), (False, True)]
