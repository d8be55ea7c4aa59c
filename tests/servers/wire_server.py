"""A server whose answers are bytes, so that it can break every rule of HTTP/1.1."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

# An answer is bytes, or a function that writes to the connection; a function's answer ends the connection.
Script = bytes | Callable[[socket.socket], None]


def page(body: bytes = b"hello", *, status: str = "200 OK", **headers: str) -> bytes:
    named = {"content-type": "text/html", "content-length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1") + body


@dataclass
class WireServer:
    scripts: dict[str, Script]
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def drop_connections(self) -> None:
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # ends the accept() of the other thread, which would hold the port
        self._listener.close()
        self.drop_connections()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            try:
                while (first := lines.readline()).strip():
                    headers = {}
                    while (line := lines.readline()).strip():
                        name, _, value = line.decode("latin-1").partition(":")
                        headers[name.lower()] = value.strip()
                    path = first.decode("latin-1").split(" ")[1]
                    self.seen.append((path, headers))
                    script = self.scripts.get(path, page(b"no", status="404 Not Found"))
                    if callable(script):
                        script(connection)
                        return
                    connection.sendall(script)
            except (OSError, IndexError):
                pass


@contextmanager
def serving(scripts: dict[str, Script]) -> Iterator[WireServer]:
    server = WireServer(scripts)
    try:
        yield server
    finally:
        server.close()
