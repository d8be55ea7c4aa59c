"""HTTP/1.1 over threads of the standard library, with full say over every byte of the answer."""

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.servers.site.answers import Answer

if TYPE_CHECKING:
    from tests.servers.site.server import Request, Site

PIECE = 64 * 1024


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, site: "Site") -> None:
        self.site = site
        self._connections: set[socket.socket] = set()
        self._guard = threading.Lock()
        self.is_serving = False
        self.is_ending = threading.Event()
        super().__init__(("127.0.0.1", port), Handler)

    def end(self) -> None:
        """No more connections, and those that are open end now."""
        self.is_ending.set()
        if self.is_serving:
            self.shutdown()
        self.server_close()
        with self._guard:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests do; anything else is a fault of the script and is shown."""
        import sys

        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 60
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """The site's log is the record."""

    def do_GET(self) -> None:
        length = self.headers.get("Content-Length", "")
        if length.isdigit():
            self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request, answer = self.server.site.receive(self.command, self.path, headers)
        started = time.monotonic()
        try:
            self._wait(answer.delay)
            if answer.drop:
                self.close_connection = True
                return
            request.status = answer.status
            self._send(request, answer)
        except OSError:  # the client has gone, or the site ends
            self.close_connection, request.finished = True, False
        finally:
            request.seconds = time.monotonic() - started

    do_HEAD = do_POST = do_PUT = do_OPTIONS = do_GET

    def _send(self, request: "Request", answer: Answer) -> None:
        bodiless = answer.status in (204, 304) or request.method == "HEAD"
        body = b"" if answer.status in (204, 304) else answer.sent
        head = self._head(answer, body)
        if answer.head_pause:
            for byte in head:
                self.wfile.write(bytes((byte,)))
                self._wait(answer.head_pause)
            head = b""
        # A request is finished before its last write, not after: the client may look at the log as soon as it has all of the body.
        if bodiless or not (answer.piece or answer.chunked or answer.endless or answer.cut_at is not None):
            request.sent_bytes, request.finished = 0 if bodiless else len(body), True
            self.wfile.write(head if bodiless else head + body)  # one write: a page of the usual size is one packet or two
        else:
            self.wfile.write(head)
            self._send_pieces(request, answer, body)

    def _send_pieces(self, request: "Request", answer: Answer, body: bytes) -> None:
        for piece in _pieces(body, answer):
            if request.sent_bytes:
                self._wait(answer.pause)
            if answer.cut_at is not None and request.sent_bytes + len(piece) >= answer.cut_at:
                piece = piece[: answer.cut_at - request.sent_bytes]
                request.sent_bytes += len(piece)
                self._write_piece(piece, answer)
                self.close_connection = True
                return
            request.sent_bytes += len(piece)
            request.finished = request.sent_bytes == len(body) and not self._is_chunked(answer)
            self._write_piece(piece, answer)
        if self._is_chunked(answer):
            request.finished = True
            self.wfile.write(b"0\r\n\r\n")

    def _write_piece(self, piece: bytes, answer: Answer) -> None:
        if piece:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked(answer) else piece)

    def _is_chunked(self, answer: Answer) -> bool:
        return answer.chunked or answer.endless

    def _head(self, answer: Answer, body: bytes) -> bytes:
        headers: dict[str, str | list[str]] = {"Date": self.date_time_string(), "Server": "nginx"}
        if answer.content_type:
            headers["Content-Type"] = answer.content_type
        if answer.encoding or answer.packed:
            headers["Content-Encoding"] = answer.encoding or answer.packed
        if self._is_chunked(answer):
            headers["Transfer-Encoding"] = "chunked"
        elif answer.status not in (204, 304):
            headers["Content-Length"] = str(len(body))
        for name, value in answer.headers.items():
            same = next((known for known in headers if known.lower() == name.lower()), name)
            headers[same] = value
        lines = [f"HTTP/1.1 {answer.status} {_phrase(answer.status)}"]
        for name, value in headers.items():
            lines += [f"{name}: {one}" for one in ([value] if isinstance(value, str) else value)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")

    def _wait(self, seconds: float) -> None:
        if seconds and self.server.is_ending.wait(seconds):
            raise OSError("the site ends")


def _pieces(body: bytes, answer: Answer) -> Iterator[bytes]:
    size = answer.piece or PIECE
    for _ in itertools.count() if answer.endless else range(1):
        for start in range(0, len(body), size):
            yield body[start : start + size]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
