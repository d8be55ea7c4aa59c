"""Elasticsearch's and OpenSearch's REST interface on loopback, as far as vectors need it. There is no package of either server.

Stricter than they are: an unknown key of a body or of the query is refused everywhere. As they do, it makes an index that a bulk request
names and nobody made, with vectors as plain numbers; and it shows a write to searches only after a refresh. Cosines are exact.
"""

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.servers.search_queries import Index, Refused, conditions_of, search

ELASTICSEARCH, OPENSEARCH = "elasticsearch", "opensearch"
_ABOUT = {
    ELASTICSEARCH: {
        "version": {"number": "9.1.0", "build_flavor": "default", "minimum_wire_compatibility_version": "8.19.0"},
        "tagline": "You Know, for Search",
    },
    OPENSEARCH: {
        "version": {"distribution": "opensearch", "number": "3.2.0", "build_type": "tar"},
        "tagline": "The OpenSearch Project: https://opensearch.org/",
    },
}
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")
_JSON = {"application/json", "application/vnd.elasticsearch+json"}
_NDJSON = {"application/x-ndjson", "application/vnd.elasticsearch+x-ndjson", "application/json"}


@dataclass
class Cluster:
    """`item_failures`: (status, type, reason) by id, told in the answer of a bulk request. `failed_shards` is told of every search,
    `conflicts` of every deletion."""

    flavour: str
    credentials: frozenset[str] = frozenset()
    indexes: dict[str, Index] = field(default_factory=dict)
    seen: list[tuple[str, str, Any]] = field(default_factory=list)
    item_failures: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    failed_shards: int = 0
    conflicts: int = 0
    refuses_graph: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str, options: dict[str, str], raw: bytes, content_type: str) -> Any:
        parts = [unquote(part) for part in path.strip("/").split("/") if part]
        if method in ("GET", "HEAD") and not parts:
            return {"name": "node-1", "cluster_name": "tests", "cluster_uuid": "0", **_ABOUT[self.flavour]}
        match method, parts:
            case "POST" | "PUT", [index, "_bulk"]:
                _only(options, "refresh")
                return self._bulk(index, raw, content_type, options.get("refresh", "false"))
        body = _parsed(raw, content_type)
        self.seen.append((method, path, body))
        match method, parts:
            case "PUT", [index]:
                return self._create(index, body)
            case "GET", [index, "_mapping"]:
                return {index: {"mappings": self._index(index).mappings}}
            case "POST", [index, "_search"]:
                _only(options, "allow_partial_search_results")
                return self._search(index, body)
            case "POST", [index, "_delete_by_query"]:
                _only(options, "refresh", "conflicts")
                return self._delete(index, body, options)
        raise Refused(400, "illegal_argument_exception", f"no handler found for uri [{path}] and method [{method}]")

    def _index(self, name: str) -> Index:
        if name not in self.indexes:
            raise Refused(404, "index_not_found_exception", f"no such index [{name}]")
        return self.indexes[name]

    def _create(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        if not _NAME.fullmatch(name):
            raise Refused(400, "invalid_index_name_exception", f"Invalid index name [{name}], must be lowercase")
        if name in self.indexes:
            raise Refused(400, "resource_already_exists_exception", f"index [{name}/0] already exists")
        _only(body, "mappings", "settings")
        self.indexes[name] = Index.of_mapping(self.flavour, body)
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _bulk(self, name: str, raw: bytes, content_type: str, refresh: str) -> dict[str, Any]:
        if content_type not in _NDJSON:
            raise Refused(406, "media_type_header_exception", f"Content-Type [{content_type}] is not supported")
        if not raw.endswith(b"\n"):
            raise Refused(400, "illegal_argument_exception", "The bulk request must be terminated by a newline [\\n]")
        if refresh not in ("true", "false", "wait_for", ""):
            raise Refused(400, "illegal_argument_exception", f"Unknown value for refresh: [{refresh}].")
        lines = [json.loads(line) for line in raw.splitlines()]
        self.seen.append(("POST", f"/{name}/_bulk", lines))
        if len(lines) % 2:
            raise Refused(400, "illegal_argument_exception", "Malformed action/metadata line")
        index = self.indexes.setdefault(name, Index.guessed(self.flavour))
        items = [{"index": self._put(index, name, action, source)} for action, source in zip(lines[::2], lines[1::2], strict=True)]
        if refresh in ("true", "wait_for", ""):
            index.refresh()
        return {"took": 1, "errors": any(item["index"]["status"] >= 400 for item in items), "items": items}

    def _put(self, index: Index, name: str, action: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
        _only(action, "index")
        _only(action["index"], "_id")
        identifier = action["index"]["_id"]
        told = {"_index": name, "_id": identifier}
        try:
            if identifier in self.item_failures:
                raise Refused(*self.item_failures[identifier])
            known = index.put(identifier, source)
        except Refused as refused:
            return {**told, "status": refused.status, "error": {"type": refused.kind, "reason": refused.reason}}
        return {**told, "_version": 1, "result": "updated" if known else "created", "status": 200 if known else 201}

    def _search(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        hits = search(self._index(name), dict(body), refuses_graph=self.refuses_graph)
        shards = {"total": 1, "successful": 1 - self.failed_shards, "skipped": 0, "failed": self.failed_shards}
        shown = [{"_index": name, **hit} for hit in hits]
        return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"max_score": None, "hits": shown}}

    def _delete(self, name: str, body: dict[str, Any], options: dict[str, str]) -> dict[str, Any]:
        index = self._index(name)
        _only(body, "query", "max_docs")
        if options.get("refresh") not in ("true", "false", None):
            raise Refused(
                400, "illegal_argument_exception", f"Failed to parse value [{options['refresh']}] as only [true] or [false] are allowed."
            )
        gone = conditions_of(index, body["query"])[: body["max_docs"]]
        if not self.conflicts:
            index.delete(gone)
        if options.get("refresh") == "true":
            index.refresh()
        told = {"deleted": 0 if self.conflicts else len(gone), "version_conflicts": self.conflicts, "failures": []}
        return {"took": 1, "timed_out": False, "total": len(gone), "batches": 1, "noops": 0, **told}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "SearchServer"

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        cluster, url = self.server.cluster, urlsplit(self.path)
        options = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        content_type = (self.headers.get("Content-Type") or "").partition(";")[0].strip()
        try:
            if cluster.credentials and self.headers.get("Authorization") not in cluster.credentials:
                raise Refused(401, "security_exception", "missing or wrong authentication credentials")
            with cluster.lock:
                status, answer = 200, cluster.answer(self.command, url.path, options, raw, content_type)
        except Refused as refused:
            cause = {"type": refused.kind, "reason": refused.reason}
            status, answer = refused.status, {"error": {"root_cause": [cause], **cause}, "status": refused.status}
        data = json.dumps(answer).encode()
        self.send_response(status)
        accepted = self.headers.get("Accept") or ""
        self.send_header("Content-Type", accepted if accepted.startswith("application/vnd.") else "application/json")
        if cluster.flavour == ELASTICSEARCH:
            self.send_header("X-elastic-product", "Elasticsearch")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = _answer

    def log_message(self, *_: object) -> None:
        pass


class SearchServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.cluster = cluster


def _only(given: dict[str, Any], *known: str) -> None:
    for name in given:
        if name not in known:
            raise Refused(400, "parsing_exception", f"Unknown key [{name}]; known are {', '.join(known)}")


def _parsed(raw: bytes, content_type: str) -> Any:
    if not raw:
        return {}
    if content_type not in _JSON:
        raise Refused(406, "media_type_header_exception", f"Content-Type [{content_type}] is not supported")
    try:
        return json.loads(raw)
    except ValueError as error:
        raise Refused(400, "x_content_parse_exception", str(error)) from error


@contextmanager
def serving(flavour: str, *, api_key: str = "", user: tuple[str, str] = ("", "")) -> Iterator[SearchServer]:
    known = {f"ApiKey {api_key}"} if api_key else set()
    if user[0]:
        known.add(f"Basic {base64.b64encode(':'.join(user).encode()).decode()}")
    server = SearchServer(Cluster(flavour, frozenset(known)))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
