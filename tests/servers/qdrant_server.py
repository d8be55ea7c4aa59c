"""Qdrant's REST interface on loopback: what comes is read by the official client's models and answered by its local mode.

There is no package of the server itself. What the models refuse (400), an absent collection (404) and one that is made twice (409) are told
as the server tells them.
"""

import json
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import ValidationError
from qdrant_client import QdrantClient
from qdrant_client.http import models

_COLLECTION = re.compile(r"/collections/(?P<name>[^/?]+)(?P<rest>/[^?]*)?(?:\?(?P<query>.*))?")


class QdrantServer(ThreadingHTTPServer):
    daemon_threads = True
    # http.server's own backlog of 5 refuses what a few dozen threads open at once.
    request_queue_size = 128

    def __init__(self, api_key: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api_key = api_key
        self.client = QdrantClient(":memory:")
        self.lock = threading.Lock()
        self.seen: list[tuple[str, str, Any]] = []
        # A status that is answered, while it is set, to everything whose path ends so.
        self.failing = 0
        self.failing_path = ""
        # Called after points were written, before it is answered.
        self.after_writing: Callable[[], None] = lambda: None


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: QdrantServer

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(raw) if raw else None
        try:
            self._authorize()
            with self.server.lock, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the local mode has no indexes, and advises against many points
                self.server.seen.append((self.command, self.path, body))
                result = _route(self.server.client, self.command, self.path, body)
            if self.command == "PUT" and "/points" in self.path:
                self.server.after_writing()
            status, answer = 200, {"result": _plain(result), "status": "ok", "time": 0.0}
        except _Refused as refused:
            status, answer = refused.status, {"status": {"error": refused.message}, "time": 0.0}
        except (ValidationError, ValueError) as error:
            status, answer = 400, {"status": {"error": f"Wrong input: {error}"[:2000]}, "time": 0.0}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = _answer

    def _authorize(self) -> None:
        if self.server.failing and self.path.partition("?")[0].endswith(self.server.failing_path):
            raise _Refused(self.server.failing, "Service is failing as it was told to")
        if self.server.api_key and self.headers.get("api-key") != self.server.api_key:
            raise _Refused(401, "Invalid API key or JWT")

    def log_message(self, *_: object) -> None:
        pass


def _plain(result: Any) -> Any:
    return result.model_dump(mode="json") if hasattr(result, "model_dump") else result


def _route(client: QdrantClient, method: str, path: str, body: Any) -> Any:
    found = _COLLECTION.fullmatch(path)
    if found is None:
        raise _Refused(404, "")
    name, rest, waits = found["name"], found["rest"] or "", "wait=true" in (found["query"] or "")
    exists = client.collection_exists(name)
    if (method, rest) == ("PUT", ""):
        if exists:
            raise _Refused(409, f"Wrong input: Collection `{name}` already exists!")
        made = models.CreateCollection.model_validate(body)
        return client.create_collection(name, vectors_config=made.vectors)
    if not exists:
        raise _Refused(404, f"Not found: Collection `{name}` doesn't exist!")
    if (method, rest) == ("PUT", "/index"):
        index = models.CreateFieldIndex.model_validate(body)
        return client.create_payload_index(name, index.field_name, field_schema=index.field_schema)
    if not waits and method == "PUT":
        raise _Refused(400, "Wrong input: these tests read what they wrote, so they must wait")
    return _points(client, name, method, rest, body)


def _points(client: QdrantClient, name: str, method: str, rest: str, body: Any) -> Any:
    size = client.get_collection(name).config.params.vectors.size
    match method, rest:
        case "PUT", "/points":
            points = models.PointsList.model_validate(body).points
            for point in points:
                _check_length(size, point.vector)
            return client.upsert(name, points)
        case "POST", "/points/delete":
            selector = models.FilterSelector.model_validate(body) if "filter" in body else models.PointIdsList.model_validate(body)
            return client.delete(name, selector)
        case "POST", "/points/query":
            asked = models.QueryRequest.model_validate(body)
            _check_length(size, asked.query)
            return client.query_points(
                name,
                query=asked.query,
                query_filter=asked.filter,
                search_params=asked.params,
                limit=asked.limit or 10,
                with_payload=bool(asked.with_payload),
            )
        case "POST", "/points/scroll":
            return _scroll(client, name, models.ScrollRequest.model_validate(body))
    raise _Refused(404, "")


def _scroll(client: QdrantClient, name: str, asked: models.ScrollRequest) -> models.ScrollResult:
    """In the order of ids from `offset` on, as the server does; the local mode has its own order."""
    points, _ = client.scroll(name, scroll_filter=asked.filter, limit=1_000_000, with_payload=False)
    ahead = sorted((point for point in points if point.id >= (asked.offset or 0)), key=lambda point: point.id)
    limit = asked.limit or 10
    return models.ScrollResult(points=ahead[:limit], next_page_offset=ahead[limit].id if len(ahead) > limit else None)


def _check_length(size: int, vector: Any) -> None:
    if len(vector) != size:
        raise _Refused(400, f"Wrong input: Vector dimension error: expected dim: {size}, got {len(vector)}")


@contextmanager
def serving(api_key: str = "") -> Iterator[QdrantServer]:
    server = QdrantServer(api_key)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        server.client.close()
