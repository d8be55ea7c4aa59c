"""A real local server that speaks the wire format of one vendor of embeddings (`vendors.VENDORS`), scripted like `openai_server`.

    with VendorServer("cohere") as server:
        server.answer_next(Answer(status=429, retry_after=2))
        ...  # endpoint = server.endpoint
        assert server.asked[-1].role == "search_document"

Requests in another form than the vendor's are refused as it refuses them. `most_texts`, `most_tokens` and `longest` are its limits for a
request and for one text, in words. It also gives access tokens of Google Cloud at /token. Vectors are those of the `hashing` model.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import numpy as np

from kb.providers import _loaded
from kb.providers.hashing import hash_vector
from tests.servers.openai_server import Answer
from tests.servers.vendors import VENDORS, Asked, Refused


class VendorServer:
    def __init__(
        self, vendor: str, *, dimension: int = 384, most_texts: int = 10_000, most_tokens: int = 10**9, longest: int = 10**9
    ) -> None:
        self.vendor = VENDORS[vendor]
        self.dimension = dimension
        self.most_texts, self.most_tokens, self.longest = most_texts, most_tokens, longest
        self.asked: list[Asked] = []
        self.statuses: list[int] = []
        self.headers: list[dict[str, str]] = []
        self.tokens_given = 0
        self._answers: deque[Answer] = deque()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._http.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.endpoint = self.origin + self.vendor.path

    def __enter__(self) -> VendorServer:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer_next(self, *answers: Answer) -> None:
        with self._lock:
            self._answers.extend(answers)

    def paid_texts(self) -> list[str]:
        return [text for asked, status in zip(self.asked, self.statuses, strict=True) if status == 200 for text in asked.texts]

    def answer(self, path: str, headers: dict[str, str], content: bytes) -> tuple[int, Any, dict[str, str]]:
        body = json.loads(content)
        with self._lock:
            script = self._answers.popleft() if self._answers else Answer()
        try:
            self.vendor.verify(path, headers, content)
            asked = self.vendor.read(path, headers, body)
        except Refused as error:
            return error.status, self.vendor.error(error.status, error.message), {}
        status, message = self._verdict(asked, script)
        with self._lock:
            self.asked.append(asked)
            self.statuses.append(status)
            self.headers.append(headers)
        time.sleep(script.delay)
        waiting = {} if script.retry_after is None else {"Retry-After": str(script.retry_after)}
        if script.body is not None:
            return script.status, script.body, {"Content-Type": script.content_type}
        if status != 200:
            return status, self.vendor.error(status, message), waiting
        tokens = sum(len(text.split()) for text in asked.texts)
        answer = self.vendor.write(self._vectors(asked, script, packed=body.get("encoding_format") == "base64"), tokens, asked)
        if script.shuffled:
            answer["data"].reverse()
        return 200, answer, self.vendor.headers(tokens)

    def _verdict(self, asked: Asked, script: Answer) -> tuple[int, str]:
        if script.status != 200:
            return script.status, script.message
        words = [len(text.split()) for text in asked.texts]
        if max(words) > self.longest:
            return 400, f"the input is too long: {max(words)} tokens, at most {self.longest}"
        if len(words) > self.most_texts:
            return 400, f"at most {self.most_texts} inputs"
        if sum(words) > self.most_tokens:
            return 400, f"too many tokens: {sum(words)}, at most {self.most_tokens}"
        return 200, ""

    def _vectors(self, asked: Asked, script: Answer, *, packed: bool) -> list[Any]:
        found = []
        for text in asked.texts[: len(asked.texts) - script.missing]:
            vector = hash_vector(text, script.dimension or asked.dimension or self.dimension)
            if script.not_a_number:
                vector[0] = np.nan
            found.append(base64.b64encode(vector.astype("<f4").tobytes()).decode() if packed else vector.tolist())
        return found


def _handler_for(server: VendorServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def log_message(self, format: str, *args: Any) -> None:
            """What was asked is the record."""

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            if self.path == "/token":
                self._send(*_token(server, parse_qs(content.decode())))
            else:
                self._send(*server.answer(self.path, headers, content))

        def _send(self, status: int, document: Any, headers: dict[str, str]) -> None:
            body = document if isinstance(document, str) else json.dumps(document)
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body.encode())), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

    return Handler


def _token(server: VendorServer, form: dict[str, list[str]]) -> tuple[int, Any, dict[str, str]]:
    """The token endpoint of Google: a signed assertion for an hour's token."""
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    _, claims, _ = form["assertion"][0].split(".")
    if json.loads(base64.urlsafe_b64decode(claims + "=="))["iss"] != "us@ours.test":
        return 400, {"error": "invalid_grant", "error_description": "Invalid grant: account not found"}, {}
    server.tokens_given += 1
    return 200, {"access_token": "ya29.of-the-tests", "expires_in": 3599, "token_type": "Bearer"}, {}


def close_providers() -> None:
    """End the connections that the providers of this process keep to servers which are about to go."""
    for provider in _loaded.values():
        if hasattr(provider, "close"):
            provider.close()
    _loaded.clear()
