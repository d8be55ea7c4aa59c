"""The scriptable site, each behaviour seen through a real client."""

import gzip
import socket
import time
import zlib
from itertools import pairwise

import brotli
import httpx
import pytest

from config.addresses import Guard
from tests.fleet import wait_for
from tests.servers.site import Answer, Site, bomb, maintenance, redirect, refusal
from tests.servers.site.answers import zstd


@pytest.fixture
def site():
    with Site() as site:
        yield site


@pytest.fixture
def client(site):
    with httpx.Client(base_url=site.url(""), trust_env=False, timeout=5) as client:
        yield client


def test_an_address_answers_what_was_put_there_until_it_is_removed(site, client):
    assert site.put("/a", "<p>one</p>") == site.url("/a")
    answer = client.get("/a")
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (200, "<p>one</p>", "text/html; charset=utf-8")
    site.put("/a", b"%PDF-1.7", content_type="application/pdf", headers={"X-Robots-Tag": ["noindex", "nofollow"]})
    answer = client.get("/a")
    assert answer.content == b"%PDF-1.7"
    assert answer.headers.get_list("x-robots-tag") == ["noindex", "nofollow"]
    site.remove("/a")
    assert client.get("/a").status_code == 404


def test_queries_and_everything_below_a_path(site, client):
    site.put("/list", "any")
    site.put("/list?page=2", "second")
    site.put("/tree/*", lambda request: f"{request.path} {request.query}")
    assert client.get("/list?page=2").text == "second"
    assert client.get("/list?page=3").text == client.get("/list").text == "any"
    assert client.get("/tree/x/y?z=1").text == "/tree/x/y z=1"


def test_the_log_says_what_was_asked_and_what_became_of_it(site, client):
    site.put("/a", "x" * 100)
    client.get("/a?b=1", headers={"If-None-Match": '"old"'})
    client.head("/a")
    client.get("/absent")
    first, second, third = site.log
    assert (first.method, first.target, first.path, first.query, first.host) == ("GET", "/a?b=1", "/a", "b=1", "127.0.0.1")
    assert (first.headers["if-none-match"], first.status, first.sent_bytes, first.finished) == ('"old"', 200, 100, True)
    assert (second.method, second.sent_bytes) == ("HEAD", 0)
    assert (third.path, third.status) == ("/absent", 404)
    assert site.requests("/a") == [first, second]
    assert site.requests("/a?b=1") == site.requests("/a*")[:1] == [first]
    assert site.requests(status=404) == [third]
    assert site.counts()["/a"] == 1
    site.forget()
    assert site.log == []


def test_connections_are_kept_alive(site):
    site.put("/", "x")
    with socket.create_connection(("127.0.0.1", site.port), timeout=5) as one:
        for _ in range(2):
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert one.recv(4096).endswith(b"\r\n\r\nx")
    assert len(site.requests("/")) == 2


def test_host_names_are_sites_of_their_own(site, client):
    site.put("/", "everybody's")
    site.put("/", "of the docs", host="Docs.Example")
    assert client.get("/", headers={"Host": f"docs.example:{site.port}"}).text == "of the docs"
    assert client.get("/", headers={"Host": "www.example"}).text == "everybody's"
    assert [request.host for request in site.log] == ["docs.example", "www.example"]
    assert len(site.requests(host="docs.example")) == 1
    with Site("docs.example") as named:
        assert named.url("/x") == f"http://docs.example:{named.port}/x"


def test_names_lead_here_unless_they_are_bound_elsewhere(site):
    site.resolve("inside.example", ["10.0.0.5"])
    site.resolve("rebound.example", ["93.184.216.34"], ["127.0.0.1"])
    assert site.resolver("any.example", 80) == ["127.0.0.1"]
    assert site.resolver("INSIDE.example", 80) == ["10.0.0.5"]
    assert [site.resolver("rebound.example", 80) for _ in range(3)] == [["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"]]
    assert site.lookups[0] == "any.example"
    assert Guard(allowed=site.allowed, resolver=site.resolver).addresses("any.example", site.port) == ["127.0.0.1"]


def test_faults_stand_in_front_of_the_site_as_long_as_they_last(site, client):
    site.put("/a", "well")
    site.put("/b", "well")
    site.fault("/a", refusal(429, retry_after=7), times=2)
    answers = [client.get("/a") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [429, 429, 200]
    assert answers[0].headers["retry-after"] == "7"
    fault = site.fault(lambda request: request.path == "/b", refusal(401), after=1)
    assert [client.get("/b").status_code for _ in range(3)] == [200, 401, 401]
    assert "www-authenticate" in client.get("/b").headers
    fault.lift()
    assert client.get("/b").status_code == 200
    site.fault("*", maintenance())
    site.fault("/a", refusal(503))  # the newest first
    assert [client.get(path).status_code for path in ("/a", "/b", "/absent", "/robots.txt")] == [503, 200, 200, 200]
    site.clear_faults()
    assert client.get("/a").text == "well"


def test_faults_of_one_host(site, client):
    site.put("/", "well")
    site.fault("*", refusal(500), host="a.example")
    assert client.get("/", headers={"Host": "a.example"}).status_code == 500
    assert client.get("/", headers={"Host": "b.example"}).status_code == 200


def test_redirects_are_sent_as_they_are_written(site, client):
    for number, target in enumerate(("b", "//other.example/x", "http://10.0.0.1/", "/0", "ftp://x/", "http://2130706433/")):
        site.put(f"/{number}", redirect(target, 301))
        answer = client.get(f"/{number}")
        assert (answer.status_code, answer.headers["location"]) == (301, target)
    site.put("/loop", redirect("/loop"))
    with pytest.raises(httpx.TooManyRedirects):
        client.get("/loop", follow_redirects=True)


def test_an_etag_of_the_body_is_confirmed_until_the_body_changes(site, client):
    site.put("/a", "one", etag="auto")
    tag = client.get("/a").headers["etag"]
    again = client.get("/a", headers={"If-None-Match": f'"x", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert "content-length" not in again.headers
    site.put("/a", "two", etag="auto")
    changed = client.get("/a", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


def test_a_rotating_etag_is_another_one_with_each_body(site, client):
    site.put("/a", "same", etag="rotating")
    first, second = client.get("/a").headers["etag"], client.get("/a").headers["etag"]
    assert first != second
    assert client.get("/a", headers={"If-None-Match": second}).status_code == 304
    assert client.get("/a", headers={"If-None-Match": first}).status_code == 200


def test_last_modified_is_confirmed_only_where_no_etag_disagrees(site, client):
    date = "Tue, 01 Dec 2026 03:00:00 GMT"
    site.put("/a", "x", last_modified=date, etag='"t"')
    assert client.get("/a", headers={"If-Modified-Since": date}).status_code == 304
    assert client.get("/a", headers={"If-Modified-Since": "Mon, 30 Nov 2026 03:00:00 GMT"}).status_code == 200
    assert client.get("/a", headers={"If-Modified-Since": date, "If-None-Match": '"u"'}).status_code == 200


@pytest.mark.parametrize(
    ("encoding", "unpack"),
    [("gzip", gzip.decompress), ("deflate", zlib.decompress), ("br", brotli.decompress), ("zstd", zstd.decompress)],
)
def test_bodies_are_packed(site, client, encoding, unpack):
    site.put("/a", "text " * 100, encoding=encoding)
    with client.stream("GET", "/a") as answer:
        packed = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == encoding
    assert len(packed) == site.log[0].sent_bytes < 100
    assert unpack(packed) == b"text " * 100


@pytest.mark.parametrize(("encoding", "unpack"), [("gzip", gzip.decompress), ("br", brotli.decompress), ("zstd", zstd.decompress)])
def test_a_bomb_is_small_on_the_wire(site, client, encoding, unpack):
    site.put("/bomb", bomb(encoding, size=20_000_000))
    with client.stream("GET", "/bomb") as answer:
        packed = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == encoding
    assert len(packed) < 50_000 < 20_000_000 < len(unpack(packed))


def test_text_goes_out_in_its_charset_whatever_the_header_says(site, client):
    site.put("/gbk", "中文", charset="gbk", content_type="text/html")
    site.put("/utf16", "中文", charset="utf-16", content_type="text/html")
    site.put("/wrong", "é", charset="latin-1")
    assert client.get("/gbk").content == "中文".encode("gbk")
    assert client.get("/gbk").headers["content-type"] == "text/html"
    assert client.get("/utf16").content[:2] in (b"\xff\xfe", b"\xfe\xff")
    assert (client.get("/wrong").content, client.get("/wrong").headers["content-type"]) == (b"\xe9", "text/html; charset=utf-8")
    site.put("/none", b"x", content_type="")
    assert "content-type" not in client.get("/none").headers


def test_slow_answers(site, client):
    site.put("/late", "x", delay=0.3)
    site.put("/head", "x", head_pause=0.01)
    site.put("/body", "x" * 10, piece=2, pause=0.08)
    for path in ("/late", "/head", "/body"):
        started = time.monotonic()
        assert client.get(path).status_code == 200
        assert time.monotonic() - started >= 0.25
    assert site.log[-1].finished
    site.put("/late", "x", delay=30)
    with pytest.raises(httpx.ReadTimeout):
        client.get("/late", timeout=0.1)


def test_a_body_that_is_cut_is_noticed_and_logged(site, client):
    site.put("/a", "x" * 1000, cut_at=300)
    site.put("/packed", "many words " * 1000, encoding="gzip", cut_at=30)
    site.put("/chunked", "x" * 1000, chunked=True, piece=100, cut_at=250)
    for path in ("/a", "/packed", "/chunked"):
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(path)
    assert [(request.status, request.finished) for request in site.log] == [(200, False)] * 3
    assert [request.sent_bytes for request in site.log] == [300, 30, 250]


def test_an_endless_body_ends_when_the_client_leaves(site, client):
    site.put("/a", b"0123456789", endless=True, piece=10)
    with client.stream("GET", "/a") as answer:
        pieces = answer.iter_raw()
        assert sum(len(next(pieces)) for _ in range(100)) >= 100
    wait_for(lambda: site.log[0].seconds > 0, seconds=5, what="the end of the endless body")
    assert not site.log[0].finished


def test_chunked_bodies(site, client):
    site.put("/a", "x" * 1000, chunked=True, piece=300)
    answer = client.get("/a")
    assert (len(answer.content), answer.headers["transfer-encoding"]) == (1000, "chunked")


def test_a_connection_may_end_without_an_answer(site, client):
    site.put("/a", Answer(drop=True))
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/a")
    assert (site.log[0].status, site.log[0].finished) == (0, False)


def test_content_may_differ_on_each_request(site, client):
    turns = iter(range(10))
    site.put("/a", lambda request: Answer(status=200 + next(turns), body=request.headers["user-agent"]))
    assert [client.get("/a").status_code for _ in range(3)] == [200, 201, 202]


def test_the_site_goes_away_and_comes_back_at_its_port(site, client):
    site.put("/", "x")
    client.get("/")
    site.stop()
    with pytest.raises(httpx.TransportError):
        client.get("/")
    for _ in range(2):
        site.start()
        assert client.get("/").text == "x"


def test_requests_are_answered_side_by_side(site, client):
    site.put("/slow", "x", delay=0.5)
    site.put("/quick", "x")
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", site.port)) as slow:
        slow.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: site.requests("/slow"), seconds=5, what="the slow request", every=0.01)
        client.get("/quick")
        assert time.monotonic() - started < 0.5
        slow.recv(10)
    assert all(first.at <= second.at for first, second in pairwise(site.log))
