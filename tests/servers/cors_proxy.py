"""What stands in front of a bucket with a CORS policy: answers preflights for one origin, passes everything else on."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

import httpx


class CorsProxy:
    """`url` is where browsers would send to. Use it as a context manager."""

    def __init__(self, target: str, *, origin: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_OPTIONS(self) -> None:
                allowed = self.headers.get("Origin") == origin and self.headers.get("Access-Control-Request-Method") == "PUT"
                self.send_response(200 if allowed else 403)
                if allowed:
                    self.send_header("Access-Control-Allow-Origin", origin)
                    self.send_header("Access-Control-Allow-Methods", "PUT")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = httpx.put(target + self.path, content=body, headers={"Content-Type": self.headers["Content-Type"]})
                self.send_response(answer.status_code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "CorsProxy":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
