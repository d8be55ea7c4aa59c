"""The site itself: what stands at which address, faults in front of it, and a log of every request."""

import fnmatch
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from config.addresses import AllowedNetwork
from tests.servers.site.answers import Answer, refusal
from tests.servers.site.http import Server


@dataclass(slots=True)
class Request:
    """As it came, and what became of it: `status` 0 while it is not answered (or dropped), `finished` when the client got all of it."""

    at: float
    method: str
    host: str  # lower case, without the port
    target: str  # path and query
    headers: Mapping[str, str]  # names in lower case
    status: int = 0
    finished: bool = False
    seconds: float = 0.0
    sent_bytes: int = 0

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]


Content = Answer | str | bytes | Callable[[Request], "Answer | str | bytes"]
Where = str | Callable[[Request], bool]


@dataclass(eq=False)
class Fault:
    """Stands in front of the site until it is lifted, or for `times` answers, after it has let `after` pass."""

    where: Where
    content: Content
    times: float
    after: int
    host: str
    lifted: bool = False

    def lift(self) -> None:
        self.lifted = True

    def takes(self, request: Request) -> bool:
        if self.lifted or (self.host and self.host != request.host) or not _matches(self.where, request):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        self.times -= 1
        self.lifted = self.times <= 0
        return True


@dataclass(slots=True)
class _Place:
    content: Content
    options: dict[str, Any]
    issued: str = ""  # the last rotating ETag


class Site:
    """Threads, keep-alive, a free port of 127.0.0.1. `host` is the name that `url` uses; every name leads to the same pages unless
    they were put for one host. No name: the address itself."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self._places: dict[tuple[str, str], _Place] = {}
        self._faults: list[Fault] = []
        self._names: dict[str, list[list[str]]] = {}
        self._log: list[Request] = []
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._server: Server | None = Server(0, self)
        self.port: int = self._server.server_address[1]
        self.lookups: list[str] = []  # the names that were resolved, in order

    def __enter__(self) -> "Site":
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Answering from now on; does nothing where it is."""
        self._server = self._server or Server(self.port, self)
        if not self._server.is_serving:
            self._server.is_serving = True
            threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Away: open connections end, new ones are refused. `start` brings it back at the same port."""
        if self._server:
            self._server.end()
            self._server = None

    # What stands where -----------------------------------------------------------------------------------------------

    def url(self, path: str = "/", *, host: str = "", scheme: str = "http") -> str:
        return f"{scheme}://{host or self.host}:{self.port}{path}"

    def put(self, path: str, content: Content = b"", *, host: str = "", **options: Any) -> str:
        """Answers `path` with `content`; `options` are those of Answer. A path with a query is that address only, one without
        answers whatever query; `/calendar/*` answers everything below. Returns the URL."""
        with self._lock:
            self._places[(host.lower(), path)] = _Place(content, options)
        return self.url(path, host=host)

    def remove(self, path: str, *, host: str = "") -> None:
        """404 from now on."""
        with self._lock:
            del self._places[(host.lower(), path)]

    @property
    def paths(self) -> list[str]:
        return [path for _, path in self._places]

    def fault(self, where: Where, content: Content, *, times: float = float("inf"), after: int = 0, host: str = "") -> Fault:
        """`where`: a path with or without query, a pattern (`/docs/*`, `*` for everything) or a predicate over Request. Of several
        that take a request the newest answers."""
        fault = Fault(where, content, times, after, host.lower())
        with self._lock:
            self._faults.insert(0, fault)
        return fault

    def clear_faults(self) -> None:
        with self._lock:
            self._faults.clear()

    # Names ------------------------------------------------------------------------------------------------------------

    def resolve(self, name: str, *answers: Sequence[str]) -> None:
        """`name` leads to these addresses; with several answers each look-up takes the next one and the last one stays, which is
        how a name is bound to another address behind a crawler's back."""
        self._names[name.lower()] = [list(answer) for answer in answers]

    def resolver(self, host: str, port: int) -> list[str]:
        """For clients that take a resolver: every name leads here unless `resolve` says otherwise."""
        with self._lock:
            self.lookups.append(host)
            answers = self._names.get(host.lower(), [["127.0.0.1"]])
            return answers.pop(0) if len(answers) > 1 else answers[0]

    @property
    def allowed(self) -> tuple[AllowedNetwork, ...]:
        """What a guarded client must be allowed to reach this site."""
        return (AllowedNetwork(ip_network("127.0.0.1/32"), (self.port, self.port)),)

    # What was asked ---------------------------------------------------------------------------------------------------

    @property
    def log(self) -> list[Request]:
        with self._lock:
            return list(self._log)

    def requests(self, path: str = "", *, host: str = "", status: int | None = None) -> list[Request]:
        """In the order of their coming. `path` as in `put`: without a query it means whatever query, `*` is a wildcard."""
        return [
            request
            for request in self.log
            if (not path or _matches(path, request))
            and (not host or request.host == host.lower())
            and (status is None or request.status == status)
        ]

    def counts(self) -> Counter[str]:
        """How often each path with its query was asked for."""
        return Counter(request.target for request in self.log)

    def forget(self) -> None:
        """Empties the log."""
        with self._lock:
            self._log.clear()

    # Answering --------------------------------------------------------------------------------------------------------

    def receive(self, method: str, target: str, headers: Mapping[str, str]) -> tuple[Request, Answer]:
        """What the HTTP side calls, once a request: logged before anything is answered."""
        if target.startswith("http"):
            parts = urlsplit(target)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
        request = Request(time.time(), method, host.lower(), target, headers)
        with self._lock:
            self._log.append(request)
            fault = next((fault for fault in self._faults if fault.takes(request)), None)
            place = None if fault else self._find(request)
        if fault:
            return request, _answer(fault.content, request)
        if place is None:
            return request, refusal(404)
        return request, self._conditional(place, request, _answer(place.content, request, place.options))

    def _find(self, request: Request) -> _Place | None:
        for host in (request.host, ""):
            for path in (request.target, request.path):
                if (host, path) in self._places:
                    return self._places[(host, path)]
            for (of, pattern), place in self._places.items():
                if of == host and pattern.endswith("*") and request.target.startswith(pattern[:-1]):
                    return place
        return None

    def _conditional(self, place: _Place, request: Request, answer: Answer) -> Answer:
        if answer.status != 200 or not (answer.etag or answer.last_modified):
            return answer
        with self._lock:
            current = {"auto": answer.digest, "rotating": place.issued}.get(answer.etag, answer.etag)
            asked = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",") if tag.strip()]
            if asked:
                same = bool(current) and (current.removeprefix("W/") in asked or asked == ["*"])
            else:
                same = bool(answer.last_modified) and request.headers.get("if-modified-since") == answer.last_modified
            if answer.etag == "rotating" and not same:
                current = place.issued = f'"turn-{next(self._numbers)}"'
        validators = {"ETag": current, "Last-Modified": answer.last_modified}
        headers = {name: value for name, value in validators.items() if value} | dict(answer.headers)
        if same:
            return replace(answer, status=304, body=b"", content_type="", encoding="", packed="", headers=headers)
        return replace(answer, headers=headers)


def _answer(content: Content, request: Request, options: Mapping[str, Any] | None = None) -> Answer:
    if callable(content):
        content = content(request)
    answer = content if isinstance(content, Answer) else Answer(body=content)
    return replace(answer, **options) if options else answer


def _matches(where: Where, request: Request) -> bool:
    if callable(where):
        return where(request)
    if "*" in where:
        return fnmatch.fnmatchcase(request.target, where.replace("?", "[?]"))
    return where == (request.target if "?" in where else request.path)
