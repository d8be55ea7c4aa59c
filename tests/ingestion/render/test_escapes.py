"""Pages that want to reach what they must not: the browser opens no connection, and what asks for it is refused by the guard."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from threading import Thread

import pytest

from ingestion.crawl.fetch import Fetcher
from ingestion.render import Renderer
from tests.servers.site import Site, redirect

# Each way in which a page can reach a network, as one script; PORT is a service of this machine, "" our own site.
WAYS = {
    "fetch": "fetch(URL + '/fetch').catch(() => 0)",
    "no-cors": "fetch(URL + '/no-cors', {mode: 'no-cors'}).catch(() => 0)",
    "xhr": "{const x = new XMLHttpRequest(); x.open('GET', URL + '/xhr'); x.send()}",
    "post": "fetch(URL + '/post', {method: 'POST', body: 'x'}).catch(() => 0)",
    "beacon": "navigator.sendBeacon(URL + '/beacon', 'x')",
    "socket": "new WebSocket(URL.replace('http', 'ws') + '/socket')",
    "events": "new EventSource(URL + '/events')",
    "image": "new Image().src = URL + '/image'",
    "script": "document.head.append(Object.assign(document.createElement('script'), {src: URL + '/script'}))",
    "style": "document.head.append(Object.assign(document.createElement('link'), {rel: 'stylesheet', href: URL + '/style'}))",
    "prefetch": "document.head.append(Object.assign(document.createElement('link'), {rel: 'prefetch', href: URL + '/prefetch'}))",
    "preconnect": "document.head.append(Object.assign(document.createElement('link'), {rel: 'preconnect', href: URL}))",
    "frame": "document.body.append(Object.assign(document.createElement('iframe'), {src: URL + '/frame'}))",
    "window": "window.open(URL + '/window')",
    "worker": "new Worker(self.URL.createObjectURL(new Blob([`fetch('${URL}/worker'); "
    "new WebSocket('${URL.replace('http', 'ws')}/ws')`])))",
    "service worker": "navigator.serviceWorker && navigator.serviceWorker.register('/service.js').catch(() => 0)",
    "font": "new FontFace('f', `url(${URL}/font)`).load().catch(() => 0)",
    "media": "new Audio(URL + '/media').play().catch(() => 0)",
    "webrtc": "{const r = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:PORT'}, {urls: 'turn:127.0.0.1:PORT?transport=tcp', "
    "username: 'a', credential: 'b'}]}); r.createDataChannel('a'); r.createOffer().then(o => r.setLocalDescription(o))}",
    "webtransport": "new WebTransport(URL.replace('http:', 'https:') + '/webtransport').ready.catch(() => 0)",
    "form": "{const f = Object.assign(document.createElement('form'), {action: URL + '/form', method: 'POST'}); "
    "document.body.append(f); f.submit()}",
    "download": "document.body.appendChild(Object.assign(document.createElement('a'), {href: URL + '/download', download: 'x'})).click()",
    "location": "location.href = URL + '/location'",
}


class Ears:
    """A service of this machine that counts who connects and what is sent, by TCP and UDP at one port."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        for listen in (self._tcp, self._udp):
            Thread(target=listen, daemon=True).start()

    def close(self) -> None:
        self.tcp.close()
        self.udp.close()

    def _tcp(self) -> None:
        while True:
            try:
                connection, _ = self.tcp.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2)
                self.heard.append(f"TCP {connection.recv(100)!r}")

    def _udp(self) -> None:
        while True:
            try:
                self.heard.append(f"UDP {self.udp.recv(100)!r}")
            except OSError:
                return


@pytest.fixture
def ears() -> Iterator[Ears]:
    with closing(Ears()) as ears:
        yield ears


@pytest.fixture(params=["apart", "open"], scope="module")
def shut_in(request, renderer: Renderer) -> Iterator[Renderer]:
    """With namespaces, and without, as in containers that refuse them: then the interception alone has to hold."""
    if request.param == "apart":
        if renderer.state().startswith("open"):
            pytest.skip(renderer.state())
        yield renderer
        return
    with Renderer(apart=False) as alone:
        yield alone


def script_of(url: str, port: int, *, ways=WAYS) -> str:
    tries = [f"try {{ {way} }} catch (e) {{}}".replace("PORT", str(port)) for way in ways.values()]
    return (
        f"<div id=root></div><script>const URL_ = {json.dumps(url)};(() => {{const URL = URL_; "
        + ";\n".join(tries)
        + "; root.textContent = 'tried'})()</script>"
    )


def test_a_service_of_this_machine_hears_nothing(render, site, ears, shut_in):
    site.put("/", script_of(f"http://127.0.0.1:{ears.port}", ears.port))
    assert "tried" in render("/", by=shut_in).html.decode()
    assert ears.heard == []


def test_the_own_site_is_asked_for_what_makes_text_and_nothing_else(render, site, shut_in):
    site.put("/", script_of(site.url(""), site.port, ways={name: way for name, way in WAYS.items() if name != "location"}))
    site.put("/service.js", "fetch('/from-service')", content_type="text/javascript")
    for path in ("/fetch", "/no-cors", "/xhr", "/script", "/worker"):
        site.put(path, "0", content_type="text/javascript")
    assert "tried" in render("/", by=shut_in).html.decode()
    assert set(site.counts()) <= {"/", "/fetch", "/no-cors", "/xhr", "/script", "/worker"}
    assert {"/fetch", "/xhr", "/script"} <= set(site.counts())
    assert {request.method for request in site.log} == {"GET"}


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:{port}/", "http://2130706433:{port}/", "http://[::ffff:7f00:1]:{port}/", "http://inside.example:{port}/", "/away"],
)
def test_private_addresses_are_refused_by_the_guard_on_every_hop(render, site, ears, address):
    """By its number, by a name that leads there, and by a redirect of the own site."""
    site.resolve("inside.example", ["169.254.169.254"])
    site.put("/away", redirect(f"http://127.0.0.1:{ears.port}/secret"))
    site.put("/", f"<div id=root></div><script>fetch({json.dumps(address.format(port=ears.port))}).then(() => root.textContent = 'got it')"
             ".catch(() => root.textContent = 'refused')</script>")  # fmt: skip
    rendered = render("/")
    assert ("refused" in rendered.html.decode(), rendered.refused, ears.heard) == (True, 1, [])


def test_a_name_that_is_bound_to_another_address_meanwhile_is_refused(renderer, site, ears):
    site.resolve("docs.example", ["127.0.0.1"], ["127.0.0.2"])
    site.put("/", "<div id=root></div><script>fetch('/data').catch(() => root.textContent = 'refused')</script>")
    site.put("/data", "x")
    fetcher = Fetcher(user_agent="Lectern/test", timeout_seconds=5, allowed=site.allowed, resolver=site.resolver, connections=0)
    with closing(fetcher):
        rendered = renderer.render(site.url("/", host="docs.example"), ask=fetcher.get, user_agent="Lectern/test")
    assert "refused" in rendered.html.decode()
    assert not site.requests("/data")


def test_a_page_may_not_leave_its_site(render, site: Site):
    site.put("/", f"<p>stays</p><script>location.href = '{site.url('/', host='other.example')}'</script>")
    rendered = render("/")
    assert ("stays" in rendered.html.decode(), rendered.url) == (True, site.url("/"))
    assert not site.requests(host="other.example")
