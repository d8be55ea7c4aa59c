import asyncio
import ssl
import time
import tracemalloc

import httpx
import pytest

from config.addresses import NameNotResolved, parse_networks
from config.errors import InvalidInput, PermanentProviderError, ProviderError, TooLarge, TransientProviderError
from config.http import AddressRefused, async_client, fetch, map_error, mapped, open_client, retry_after, status_error, wall_deadline


def to_loopback(host, port):
    return ["127.0.0.1"]


def opened(*sites, **arguments):
    return open_client(allowed=parse_networks(",".join(site.networks for site in sites)), **arguments)


def get(client, url, **arguments):
    return fetch(client, "GET", url, **({"max_bytes": 10_000, "deadline": 5.0} | arguments))


def test_an_opened_port_is_reached_and_its_neighbour_is_not(site, other_site):
    with opened(site) as client:
        assert get(client, f"http://127.0.0.1:{site.port}/page").body == b"hello"
        with pytest.raises(AddressRefused, match="LECTERN_ALLOWED_PRIVATE_NETWORKS"):
            get(client, f"http://127.0.0.1:{other_site.port}/page")
    assert other_site.seen == []


def test_the_networks_of_the_environment_are_opened(site, variables):
    variables(LECTERN_ALLOWED_PRIVATE_NETWORKS=site.networks, LECTERN_SITE_URL="https://kb.example.org")
    with open_client() as client:
        assert get(client, f"http://127.0.0.1:{site.port}/page").status == 200
    assert site.seen[0][1]["user-agent"].startswith("Lectern/")
    assert "+https://kb.example.org" in site.seen[0][1]["user-agent"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "0x7f000001", "2130706433", "017700000001", "127.1", "[::ffff:127.0.0.1]", "[::1]", "0"]
)
def test_no_spelling_of_loopback_is_requested(site, host):
    with open_client(allowed=()) as client, pytest.raises(AddressRefused):
        get(client, f"http://{host}:{site.port}/page")
    assert site.seen == []


def test_a_trusted_client_reaches_any_address(site):
    with open_client(trusted=True) as client:
        assert get(client, f"http://localhost:{site.port}/page").body == b"hello"


def test_a_name_is_resolved_once_a_connection_and_the_host_header_keeps_it(site):
    asked = []

    def resolver(host, port):
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    with opened(site, resolver=resolver) as client:
        assert get(client, f"http://rebind.test:{site.port}/page").body == b"hello"
        assert get(client, f"http://rebind.test:{site.port}/page").body == b"hello"
    assert asked == ["rebind.test"]
    assert site.seen[0][1]["host"] == f"rebind.test:{site.port}"
    assert site.seen[0][2] == site.seen[1][2], "the second request came over the checked connection"


def test_a_rebound_name_is_refused_at_its_next_connection(site):
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    networks = parse_networks(site.networks)
    for expected in (None, AddressRefused):
        with open_client(allowed=networks, resolver=lambda host, port, answer=next(answers): answer) as client:
            if expected is None:
                assert get(client, f"http://rebind.test:{site.port}/page").status == 200
            else:
                with pytest.raises(expected):
                    get(client, f"http://rebind.test:{site.port}/page")


def test_a_redirect_into_a_private_network_is_refused(site, other_site):
    site.target = f"http://127.0.0.1:{other_site.port}/page"
    with opened(site) as client, pytest.raises(AddressRefused):
        get(client, f"http://127.0.0.1:{site.port}/to")
    assert other_site.seen == []


def test_httpx_following_redirects_itself_is_checked_too(site, other_site):
    site.target = f"http://localhost:{other_site.port}/page"
    with opened(site) as client, pytest.raises(AddressRefused):
        client.get(f"http://127.0.0.1:{site.port}/to", follow_redirects=True)
    assert other_site.seen == []


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/"])
def test_a_redirect_to_another_scheme_is_refused(site, target):
    site.target = target
    with opened(site) as client, pytest.raises(InvalidInput):
        get(client, f"http://127.0.0.1:{site.port}/to")


def test_keys_stay_with_the_host_that_they_were_given_for(site, other_site):
    site.target = f"http://127.0.0.1:{other_site.port}/page"
    keys = {"Authorization": "Bearer k", "X-Api-Key": "k", "Cookie": "k=1"}
    with opened(site, other_site, headers=keys) as client:
        answer = get(client, f"http://127.0.0.1:{site.port}/to", headers={"Api-Key": "k", "Accept": "text/html"})
    assert (answer.url, answer.redirects) == (site.target, (f"http://127.0.0.1:{site.port}/to",))
    assert site.seen[0][1]["x-api-key"] == "k"
    sent = other_site.seen[0][1]
    assert not {"authorization", "x-api-key", "cookie", "api-key"} & set(sent)
    assert sent["accept"] == "text/html"


def test_keys_go_along_within_one_host(site):
    with opened(site, headers={"X-Api-Key": "k"}) as client:
        assert get(client, f"http://127.0.0.1:{site.port}/to").body == b"hello"
    assert site.seen[1][1]["x-api-key"] == "k"


def test_redirects_are_counted(site):
    with opened(site) as client:
        with pytest.raises(PermanentProviderError, match="more than 3"):
            get(client, f"http://127.0.0.1:{site.port}/loop", max_redirects=3)
        assert get(client, f"http://127.0.0.1:{site.port}/loop", max_redirects=0).status == 302


@pytest.mark.parametrize("path", ["large", "unannounced", "bomb"])
def test_a_body_over_the_cap_ends_early(site, path):
    with opened(site) as client, pytest.raises(TooLarge):
        get(client, f"http://127.0.0.1:{site.port}/{path}", max_bytes=4999)


def test_a_bomb_is_not_unpacked_beyond_the_cap(site):
    with opened(site) as client:
        with pytest.raises(TooLarge):
            get(client, f"http://127.0.0.1:{site.port}/bomb")
        tracemalloc.start()
        with pytest.raises(TooLarge):
            get(client, f"http://127.0.0.1:{site.port}/bomb")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 5_000_000


def test_the_cap_is_inclusive_and_counts_decoded_bytes(site):
    with opened(site) as client:
        assert len(get(client, f"http://127.0.0.1:{site.port}/large", max_bytes=5000).body) == 5000
        with pytest.raises(TooLarge):
            get(client, f"http://127.0.0.1:{site.port}/gzip", max_bytes=599)


@pytest.mark.parametrize("path", ["gzip", "deflate", "raw"])
def test_encodings_are_decoded(site, path):
    with opened(site) as client:
        assert get(client, f"http://127.0.0.1:{site.port}/{path}", max_bytes=600).body == b"packed" * 100


@pytest.mark.parametrize("path", ["cut", "compress"])
def test_a_body_that_cannot_be_decoded_is_permanent(site, path):
    with opened(site) as client, pytest.raises(PermanentProviderError):
        get(client, f"http://127.0.0.1:{site.port}/{path}")


def test_a_broken_connection_is_transient(site):
    with opened(site) as client, pytest.raises(TransientProviderError):
        get(client, f"http://127.0.0.1:{site.port}/short")


@pytest.mark.parametrize("path", ["trickle", "headers"])
def test_the_deadline_holds_against_a_trickle(site, path):
    started = time.monotonic()
    with opened(site) as client, pytest.raises(TransientProviderError, match="in time"):
        get(client, f"http://127.0.0.1:{site.port}/{path}", deadline=0.5)
    assert time.monotonic() - started < 1.5


def test_the_deadline_holds_against_a_slow_name_server(site):
    started = time.monotonic()
    with opened(site, resolver=lambda host, port: time.sleep(3) or []) as client, pytest.raises(ProviderError) as caught:
        get(client, f"http://slow.test:{site.port}/page", deadline=0.3)
    assert caught.value.transient
    assert time.monotonic() - started < 1.5


def test_a_nested_deadline_is_put_back(site):
    with wall_deadline(30):
        with opened(site) as client:
            get(client, f"http://127.0.0.1:{site.port}/page", deadline=1)
            assert client.get(f"http://127.0.0.1:{site.port}/page").status_code == 200


def test_a_closed_port_is_transient_and_the_message_hides_the_query(site):
    port = site.port
    site.shutdown()
    site.server_close()
    with opened(site) as client, pytest.raises(TransientProviderError) as caught:
        get(client, f"http://user:pw@127.0.0.1:{port}/page?key=secret")
    assert "secret" not in str(caught.value)
    assert "pw" not in str(caught.value)


def test_an_unknown_name_is_permanent_and_a_failing_name_server_is_not():
    import socket

    for number, transient in ((socket.EAI_NONAME, False), (socket.EAI_AGAIN, True)):

        def resolver(host, port, number=number):
            raise socket.gaierror(number, "said the name server")

        with open_client(allowed=(), resolver=resolver) as client, pytest.raises(ProviderError) as caught:
            get(client, "http://nowhere.test/")
        assert caught.value.transient is transient


@pytest.mark.parametrize("url", ["", "nourl", "http://", "ftp://example.org/", "http://h:99999/", "http://①②⑦.0.0.1/", "http://h:port/"])
def test_what_is_no_url_is_invalid_input(url):
    with open_client(allowed=(), resolver=to_loopback) as client, pytest.raises(InvalidInput):
        get(client, url)


def test_tls_is_checked_by_name_over_the_pinned_address(tls_site, certificate):
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    with opened(tls_site, resolver=to_loopback, verify=trusting) as client:
        assert get(client, f"https://kb.test:{tls_site.port}/page").body == b"hello"
        with pytest.raises(PermanentProviderError, match="certificate"):
            get(client, f"https://other.test:{tls_site.port}/page")
    with opened(tls_site, resolver=to_loopback) as client, pytest.raises(PermanentProviderError, match="certificate"):
        get(client, f"https://kb.test:{tls_site.port}/page")


def test_proxies_of_the_environment_are_not_used(site, other_site, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{other_site.port}")
    with opened(site) as client:
        assert get(client, f"http://127.0.0.1:{site.port}/page").body == b"hello"
    assert other_site.seen == []


def test_the_async_client_has_the_same_guard(site, other_site):
    async def journey():
        site.target = f"http://127.0.0.1:{other_site.port}/page"
        url = f"http://kb.test:{site.port}"
        async with async_client(allowed=parse_networks(site.networks), resolver=to_loopback, timeout=5) as client:
            answer = await client.get(f"{url}/page")
            assert (answer.status_code, answer.content) == (200, b"hello")
            with pytest.raises(AddressRefused):
                await client.get(f"{url}/to", follow_redirects=True)
            with pytest.raises(AddressRefused):
                await client.get("ftp://kb.test/")
        async with async_client(trusted=True, resolver=lambda host, port: []) as client:
            with pytest.raises(ProviderError), mapped(url):
                await client.get(url)

    asyncio.run(journey())
    assert site.seen[0][1]["host"] == f"kb.test:{site.port}"
    assert other_site.seen == []


def test_the_async_client_reads_no_more_than_it_may(site):
    async def read(path, most):
        async with async_client(allowed=parse_networks(site.networks), max_bytes=most) as client:
            return (await client.get(f"http://127.0.0.1:{site.port}{path}")).content

    assert asyncio.run(read("/page", 5)) == b"hello"
    assert site.seen[0][1]["accept-encoding"] == "identity"
    with pytest.raises(PermanentProviderError, match="more than 4 bytes"):
        asyncio.run(read("/page", 4))


def test_a_message_without_an_address_says_so():
    assert str(map_error(httpx.ReadTimeout(""), "")).startswith("the address did not answer")


def test_statuses_say_whether_trying_again_helps():
    assert status_error(200, {}, what="The provider") is None
    busy = status_error(429, {"retry-after": "7"}, what="The provider")
    assert isinstance(busy, TransientProviderError)
    assert busy.retry_after == 7
    assert status_error(503, {}, what="The provider").transient
    assert not status_error(401, {}, what="The provider").transient


@pytest.mark.parametrize(
    ("value", "expected"),
    [("3", 3), ("0.5", 0.5), ("-1", None), ("soon", None), ("", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("9" * 20, 86_400)],
)
def test_retry_after(value, expected):
    assert retry_after({"retry-after": value}) == expected


def test_a_chain_of_causes_is_followed():
    error = httpx.ConnectError("no")
    error.__cause__ = NameNotResolved("no such name.", transient=False)
    assert not map_error(error, "http://a/").transient
