"""A real local server with OpenAI-shaped /v1/embeddings and /v1/models, scripted.

In a test:

    with ScriptedServer() as server:
        server.answer_next(Answer(status=429, retry_after=2), Answer(shuffled=True))
        ...  # endpoint = server.endpoint
        assert server.texts() == [...]

As a process of its own (kill tests), each request is one JSON line, on disk before it is answered:

    python tests/servers/openai_server.py --port 0 --log FILE [--dimension 384] [--delay SECONDS]

prints its endpoint as the first line. Vectors are those of the `hashing` model. POST /script with a JSON list of answers
(`[{"status": 500}]`) scripts it from outside, GET /requests returns the log.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kb.providers.hashing import hash_vector


@dataclass(frozen=True, slots=True)
class Answer:
    """How one embeddings request is answered; the default is well. `missing` leaves out that many vectors; `body` is sent as it is."""

    status: int = 200
    code: str = "scripted"
    message: str = "scripted answer"
    retry_after: float | str | None = None
    delay: float = 0.0
    drop: bool = False
    shuffled: bool = False
    missing: int = 0
    dimension: int | None = None
    not_a_number: bool = False
    body: str | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Received:
    at: float
    path: str
    texts: list[str]
    status: int
    model: str = ""
    dimensions: int | None = None
    authorization: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


class ScriptedServer:
    """Threaded, on a free port of 127.0.0.1 unless told otherwise. Scripted answers go first in, first out; then `delay` alone holds."""

    def __init__(self, *, port: int = 0, dimension: int = 384, delay: float = 0.0, log: Path | None = None) -> None:
        self.dimension = dimension
        self.delay = delay
        self.requests: list[Received] = []
        self._answers: deque[Answer] = deque()
        self._lock = threading.Lock()
        self._log: BinaryIO | None = log.open("ab") if log else None
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _handler_for(self))
        self._http.daemon_threads = True
        self.port: int = self._http.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> ScriptedServer:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        if self._log:
            self._log.close()

    def serve_forever(self) -> None:
        self._http.serve_forever()

    def answer_next(self, *answers: Answer) -> None:
        with self._lock:
            self._answers.extend(answers)

    def texts(self) -> list[str]:
        """Every text received by an embeddings request, in order, refused requests included."""
        return [text for request in self.requests for text in request.texts]

    def paid_texts(self) -> list[str]:
        """Those of requests that were answered with vectors."""
        return [text for request in self.requests if request.status == 200 for text in request.texts]

    def take(self) -> Answer:
        with self._lock:
            return self._answers.popleft() if self._answers else Answer(delay=self.delay)

    def record(self, request: Received) -> None:
        with self._lock:
            self.requests.append(request)
            if self._log:
                self._log.write(json.dumps(asdict(request)).encode() + b"\n")
                self._log.flush()
                os.fsync(self._log.fileno())


def make_vectors(texts: list[str], answer: Answer, *, dimension: int, encoding: str) -> list[dict[str, Any]]:
    items = []
    for index, text in enumerate(texts[: len(texts) - answer.missing]):
        vector = hash_vector(text, answer.dimension or dimension)
        if answer.not_a_number:
            vector[0] = np.nan
        packed: Any = base64.b64encode(vector.astype("<f4").tobytes()).decode() if encoding == "base64" else vector.tolist()
        items.append({"object": "embedding", "index": index, "embedding": packed})
    return items[::-1] if answer.shuffled else items


def _handler_for(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def log_message(self, format: str, *args: Any) -> None:
            """The request log is the record."""

        def do_GET(self) -> None:
            if self.path == "/v1/models":
                self._send(200, {"object": "list", "data": [{"id": "hashing", "object": "model", "owned_by": "tests"}]})
            elif self.path == "/requests":
                self._send(200, [asdict(request) for request in server.requests])
            else:
                self._send(404, _error("not_found", f"no path {self.path}"))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
            if self.path == "/v1/embeddings":
                self._embed(body)
            elif self.path == "/script":
                server.answer_next(*(Answer(**entry) for entry in body))
                self._send(200, {})
            else:
                self._send(404, _error("not_found", f"no path {self.path}"))

        def _embed(self, body: dict[str, Any]) -> None:
            texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
            answer = server.take()
            server.record(
                Received(
                    at=time.time(),
                    path=self.path,
                    texts=texts,
                    status=0 if answer.drop else answer.status,
                    model=body.get("model", ""),
                    dimensions=body.get("dimensions"),
                    authorization=self.headers.get("Authorization"),
                    headers=dict(self.headers),
                )
            )
            time.sleep(answer.delay)
            if answer.drop:
                self.close_connection = True
                self.connection.close()
                return
            headers = {} if answer.retry_after is None else {"Retry-After": str(answer.retry_after)}
            if answer.body is not None:
                self._send_bytes(answer.status, answer.body.encode(), {**headers, "Content-Type": answer.content_type})
                return
            if answer.status != 200:
                self._send(answer.status, _error(answer.code, answer.message), headers)
                return
            dimension = body.get("dimensions") or server.dimension
            items = make_vectors(texts, answer, dimension=dimension, encoding=body.get("encoding_format", "float"))
            tokens = sum(len(text.split()) for text in texts)
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            self._send(200, {"object": "list", "model": body.get("model"), "data": items, "usage": usage})

        def _send(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
            self._send_bytes(status, json.dumps(document).encode(), headers or {})

        def _send_bytes(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            try:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # the client was killed while it waited, which is what some tests do
                self.close_connection = True

    return Handler


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "code": code, "param": None}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--delay", type=float, default=0.0)
    options = parser.parse_args()
    server = ScriptedServer(port=options.port, dimension=options.dimension, delay=options.delay, log=options.log)
    print(server.endpoint, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
