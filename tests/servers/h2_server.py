"""A small HTTP/2 server over TLS: a page for every path, `/stall` never answers, `/half` stops in the middle of its body."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.exceptions

BODY = b"<p>two</p>" * 3000


class H2Server:
    def __init__(self, certificate: tuple[Path, Path]) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*certificate)
        self._context.set_alpn_protocols(["h2"])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.seen: list[tuple[str, dict[bytes, bytes]]] = []
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            with self._context.wrap_socket(plain, server_side=True) as sock:
                state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
                state.initiate_connection()
                sock.sendall(state.data_to_send())
                while data := sock.recv(65536):
                    for event in state.receive_data(data):
                        if isinstance(event, h2.events.RequestReceived):
                            self._answer(state, event)
                    sock.sendall(state.data_to_send())
        except (OSError, h2.exceptions.ProtocolError):
            pass  # a client that hangs up, or speaks on after the goodbye

    def _answer(self, state: h2.connection.H2Connection, event: h2.events.RequestReceived) -> None:
        headers = dict(event.headers)
        path = headers[b":path"].decode()
        self.seen.append((path, headers))
        if path == "/stall":
            return
        if path == "/bye":
            state.close_connection(last_stream_id=0)
            return
        state.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/html; charset=UTF-8"), ("etag", '"2"')])
        for start in range(0, len(BODY), 10_000):
            state.send_data(event.stream_id, BODY[start : start + 10_000])
            if path == "/half":
                return
        state.end_stream(event.stream_id)


@contextmanager
def serving_h2(certificate: tuple[Path, Path]) -> Iterator[H2Server]:
    server = H2Server(certificate)
    try:
        yield server
    finally:
        server.close()
