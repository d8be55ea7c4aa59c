"""MongoDB's wire protocol on loopback, with Atlas's vector search as far as vectors need it. There is no package of the server.

One primary of a replica set. As in Atlas a search index is built for a while, follows what is written a moment later, and finds nothing,
silently, where it is absent or unfinished. Unknown commands, options and stages are refused. Cosines are exact.
"""

import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import bson

from tests.servers.mongo_commands import Cluster, Login

_OP_REPLY, _OP_QUERY, _OP_MSG = 1, 2004, 2013


class _Handler(socketserver.BaseRequestHandler):
    server: "MongoServer"

    def handle(self) -> None:
        login = Login(self.server.cluster)
        while (message := self._read()) is not None:
            number, operation, body = message
            if self.server.mute:
                continue
            if operation == _OP_QUERY:
                skip = body.index(b"\0", 4) + 1 + 8
                answer = bson.encode(login.answer(bson.decode(body[skip:])))
                payload = struct.pack("<iqii", 8, 0, 0, 1) + answer
                self._send(number, _OP_REPLY, payload)
            else:
                payload = struct.pack("<i", 0) + b"\0" + bson.encode(login.answer(_command(body)))
                self._send(number, _OP_MSG, payload)

    def _read(self) -> tuple[int, int, bytes] | None:
        head = self._exactly(16)
        if head is None:
            return None
        length, number, _, operation = struct.unpack("<iiii", head)
        body = self._exactly(length - 16)
        return None if body is None else (number, operation, body)

    def _exactly(self, size: int) -> bytes | None:
        found = bytearray()
        while len(found) < size:
            try:
                part = self.request.recv(size - len(found))
            except OSError:
                return None
            if not part:
                return None
            found += part
        return bytes(found)

    def _send(self, number: int, operation: int, payload: bytes) -> None:
        self.request.sendall(struct.pack("<iiii", 16 + len(payload), 0, number, operation) + payload)


def _command(body: bytes) -> dict[str, Any]:
    """An OP_MSG: one document, and sequences of documents that belong to it."""
    assert struct.unpack("<I", body[:4])[0] & ~0x10000 == 0, "a checksum or more to come"
    position, command, more = 4, {}, {}
    while position < len(body):
        kind, size = body[position], struct.unpack("<i", body[position + 1 : position + 5])[0]
        section = body[position + 1 : position + 1 + size]
        if kind == 0:
            command = bson.decode(section)
        else:
            name, _, documents = section[4:].partition(b"\0")
            more[name.decode()] = bson.decode_all(documents)
        position += 1 + size
    return {**command, **more}


class MongoServer(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, user: tuple[str, str] | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.cluster = Cluster(f"127.0.0.1:{self.server_address[1]}", user)
        self.mute = False
        self._sockets: list[socket.socket] = []

    def get_request(self) -> tuple[socket.socket, Any]:
        request, address = super().get_request()
        self._sockets.append(request)
        return request, address

    def hang_up(self) -> None:
        for one in self._sockets:
            one.close()


@contextmanager
def serving(user: tuple[str, str] | None = None) -> Iterator[MongoServer]:
    server = MongoServer(user)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        server.hang_up()
