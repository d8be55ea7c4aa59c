"""A real local server with the rerank endpoints of three vendors, scripted: /v2 is Cohere's, /voyage/v1 Voyage's, /jina/v1 Jina's.

A body that the vendor would refuse is refused: an unknown key, no key in the header, more documents than it takes. Scores are the share of
the query's words that a document holds, or what a test says of a document (`scores`, by a part of its text).
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "rk-of-the-tests"
PATHS = {"cohere": "/v2", "voyage": "/voyage/v1", "jina": "/jina/v1"}
_TAKEN = {
    "cohere": {"model", "query", "documents", "top_n", "max_tokens_per_doc", "priority"},
    "voyage": {"model", "query", "documents", "top_k", "return_documents", "truncation"},
    "jina": {"model", "query", "documents", "top_n", "return_documents"},
}


@dataclass(frozen=True, slots=True)
class Answer:
    """How one request is answered; the default is well, best first as the vendors do. `body` is sent as it is."""

    status: int = 200
    message: str = "scripted answer"
    retry_after: float | None = None
    delay: float = 0.0
    missing: int = 0
    reverse: bool = False
    shift: int = 0
    repeat: bool = False
    not_a_number: bool = False
    scale: float = 1.0
    body: str | None = None


@dataclass(slots=True)
class RerankServer:
    most_documents: int = 1000
    scores: dict[str, float] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    _answers: deque[Answer] = field(default_factory=deque)
    _http: Any = None

    def __enter__(self) -> RerankServer:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def endpoint(self, dialect: str) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}{PATHS[dialect]}"

    def answer_next(self, *answers: Answer) -> None:
        self._answers.extend(answers)

    def take(self) -> Answer:
        return self._answers.popleft() if self._answers else Answer()

    def score(self, query: str, document: str) -> float:
        for part, score in self.scores.items():
            if part in document:
                return score
        words = set(query.lower().split())
        return len(words & set(document.lower().split())) / max(1, len(words))


def _handler_for(server: RerankServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def log_message(self, format: str, *args: Any) -> None:
            """The list of requests is the record."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            dialect = next((name for name, path in PATHS.items() if self.path == f"{path}/rerank"), None)
            answer = server.take()
            server.requests.append({"dialect": dialect, "body": body, "authorization": self.headers.get("Authorization")})
            time.sleep(answer.delay)
            refusal = _refusal(server, dialect, body, self.headers.get("Authorization"))
            if answer.body is not None:
                self._send(answer.status, answer.body.encode(), answer)
            elif answer.status != 200:
                self._send(answer.status, _error(dialect, answer.message), answer)
            elif refusal:
                self._send(refusal[0], _error(dialect, refusal[1]), answer)
            else:
                self._send(200, json.dumps(_ranked(server, dialect or "", body, answer)).encode(), answer)

        def _send(self, status: int, content: bytes, answer: Answer) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                if answer.retry_after is not None:
                    self.send_header("Retry-After", str(answer.retry_after))
                self.end_headers()
                self.wfile.write(content)
            except OSError:  # the client did not wait
                self.close_connection = True

    return Handler


def _refusal(server: RerankServer, dialect: str | None, body: dict[str, Any], authorization: str | None) -> tuple[int, str] | None:
    if dialect is None:
        return 404, "no such path"
    if authorization != f"Bearer {KEY}":
        return 401, "invalid api token"
    if unknown := set(body) - _TAKEN[dialect]:
        return 422, f"unknown field: {', '.join(sorted(unknown))}"
    if len(body["documents"]) > server.most_documents:
        return 400, f"too many documents: at most {server.most_documents} are taken"
    return None


def _ranked(server: RerankServer, dialect: str, body: dict[str, Any], answer: Answer) -> dict[str, Any]:
    scored = [(server.score(body["query"], text) * answer.scale, index) for index, text in enumerate(body["documents"])]
    scored.sort(key=lambda pair: (-pair[0], pair[1]), reverse=answer.reverse)
    results = [{"index": index + answer.shift, "relevance_score": score} for score, index in scored]
    results = results[: len(results) - answer.missing]
    if answer.repeat:
        results[-1]["index"] = results[0]["index"]
    if answer.not_a_number:
        results[-1]["relevance_score"] = float("nan")
    if dialect == "cohere":
        return {"id": "1", "results": results, "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}}
    usage = {"total_tokens": sum(len(text.split()) for text in body["documents"])}
    if dialect == "voyage":
        return {"object": "list", "data": results, "model": body["model"], "usage": usage}
    return {"object": "list", "results": results, "model": body["model"], "usage": usage}


def _error(dialect: str | None, message: str) -> bytes:
    return json.dumps({"message": message} if dialect == "cohere" else {"detail": message}).encode()
