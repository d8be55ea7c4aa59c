"""A small object store: PUT, GET, HEAD and DELETE of objects in one bucket, kept in memory, answered as S3 answers."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import unquote, urlsplit


class ObjectStore:
    """`objects` maps BUCKET/KEY to bytes; `requests` holds (method, path, whether it was signed). Use it as a context manager."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, bool]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "ObjectStore":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _key(self) -> str:
                path = unquote(urlsplit(self.path).path).lstrip("/")
                store.requests.append((self.command, path, "AWS4-HMAC-SHA256" in self.headers.get("Authorization", "")))
                return path

            def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def _missing(self) -> None:
                self._answer(404, b"<Error><Code>NoSuchKey</Code><Message>The key does not exist.</Message></Error>")

            def do_PUT(self) -> None:
                if "aws-chunked" in self.headers.get("Content-Encoding", ""):
                    self._answer(501, b"<Error><Code>NotImplemented</Code></Error>")  # as many stores do
                    return
                store.objects[self._key()] = self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(200, ETag='"0"')

            def do_GET(self) -> None:
                found = store.objects.get(self._key())
                if found is None:
                    self._missing()
                else:
                    self._answer(200, found, ETag='"0"', Last_Modified="Tue, 01 Dec 2026 04:00:00 GMT")

            do_HEAD = do_GET

            def do_DELETE(self) -> None:
                store.objects.pop(self._key(), None)
                self._answer(204)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
