"""A real local server with OpenAI-shaped /v1/audio/transcriptions and /v1/chat/completions with images.

It refuses what such servers refuse: no model, no WAV, an image that is none. What it hears and sees is scripted; requests are kept.
"""

import base64
import io
import json
import threading
import time
import wave
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JPEG = b"\xff\xd8\xff"


@dataclass
class Received:
    path: str
    authorization: str | None
    model: str
    seconds: float = 0.0
    picture: bytes = b""
    fields: dict[str, str] = field(default_factory=dict)


class MediaServer:
    """On a free port of 127.0.0.1. `said`: what each recording says; `seen`: what each picture shows. `fail_next` statuses come first, then
    the bodies of `answer_next` as they stand. Every answer to a good request takes `slow_seconds`."""

    def __init__(self, *, said: str = "", seen: str = "", plain: bool = False) -> None:
        self.said, self.seen, self.plain = said, seen, plain
        self.fail_next: list[int] = []
        self.answer_next: list[bytes] = []
        self.slow_seconds = 0.0
        self.requests: list[Received] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._http.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> "MediaServer":
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def _handler_for(server: MediaServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """The list of requests is the record."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if server.fail_next:
                return self._send(server.fail_next.pop(0), {"error": {"message": "scripted answer", "code": "scripted"}})
            if self.path == "/v1/audio/transcriptions":
                return self._hear(body)
            if self.path == "/v1/chat/completions":
                return self._look(json.loads(body))
            return self._send(404, {"error": {"message": f"no path {self.path}"}})

        def _hear(self, body: bytes) -> None:
            parts = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n" + body)
            fields = {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts.iter_parts()}
            with wave.open(io.BytesIO(fields.pop("file"))) as sound:
                seconds = sound.getnframes() / sound.getframerate()
            texts = {name: value.decode() for name, value in fields.items()}
            if not texts.get("model"):
                return self._send(400, {"error": {"message": "model is required"}})
            server.requests.append(Received(self.path, self.headers.get("Authorization"), texts["model"], seconds=seconds, fields=texts))
            if server.plain or texts.get("response_format") != "verbose_json":
                return self._send(200, {"text": server.said})
            segment = {"id": 0, "start": 0.5, "end": seconds, "text": f" {server.said}", "avg_logprob": -0.1, "no_speech_prob": 0.01}
            made_up = {"id": 1, "start": seconds, "end": seconds, "text": " Thank you.", "avg_logprob": -1.4, "no_speech_prob": 0.9}
            answer = {"task": "transcribe", "language": "english", "duration": seconds, "text": server.said}
            return self._send(200, {**answer, "segments": [segment, made_up] if server.said else []})

        def _look(self, body: dict[str, Any]) -> None:
            content = body["messages"][0]["content"]
            url = next(part["image_url"]["url"] for part in content if part["type"] == "image_url")
            picture = base64.b64decode(url.removeprefix("data:image/jpeg;base64,"))
            if not picture.startswith(JPEG) or not body.get("model"):
                return self._send(400, {"error": {"message": "not an image"}})
            server.requests.append(Received(self.path, self.headers.get("Authorization"), body["model"], picture=picture))
            message = {"role": "assistant", "content": server.seen}
            return self._send(200, {"id": "c1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]})

        def _send(self, status: int, document: dict[str, Any]) -> None:
            content = json.dumps(document).encode()
            if status == 200:
                time.sleep(server.slow_seconds)
                content = server.answer_next.pop(0) if server.answer_next else content
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler
