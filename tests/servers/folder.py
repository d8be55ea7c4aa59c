"""A folder over HTTP/1.1 from a process of its own, as cheaply as Python can: what is measured beside it should not wait for it.

python -m tests.servers.folder DIR        # prints its port; ends with its standard input
"""

import asyncio
import mimetypes
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]


class Connection(asyncio.Protocol):
    """Files with validators, whole or as a 304; keep-alive, no pipelining."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.buffer.endswith(b"\r\n\r\n"):
            head, self.buffer = self.buffer, b""
            self.transport.write(self.answer(head))  # type: ignore[attr-defined]

    def answer(self, head: bytes) -> bytes:
        path = unquote(head.split(b" ", 2)[1].partition(b"?")[0].decode("latin-1"))
        file = self.folder / (path.lstrip("/") or "index.html")
        try:
            if ".." in path:
                raise FileNotFoundError
            status, body = file.stat(), file.read_bytes()
        except OSError:
            return b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\nNot here."
        etag = b'"%x-%x"' % (status.st_mtime_ns, status.st_size)
        if etag in head:
            return b"HTTP/1.1 304 Not Modified\r\nETag: %b\r\n\r\n" % etag
        kind = (mimetypes.guess_type(file.name)[0] or "application/octet-stream").encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\nETag: %b\r\n\r\n%b" % (kind, len(body), etag, body)


async def serve(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(folder), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


@dataclass(frozen=True, slots=True)
class Served:
    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """The folder's files under a port of their own while the block runs."""
    command = [sys.executable, "-m", "tests.servers.folder", str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Served(int(process.stdout.readline()), process.pid)  # type: ignore[union-attr]
    finally:
        process.communicate(timeout=10)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
