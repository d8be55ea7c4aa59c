"""What one page gets of what it asks for: the rules stand here, the browser only hears the answers."""

import base64
import json
from collections.abc import Mapping
from threading import Lock
from typing import Any

from ingestion.crawl.fetch import Answer, FetchFailed
from ingestion.crawl.urls import UrlRefused, absolute, origin
from ingestion.render.base import Ask, RenderLimits

HOPS = 5
MOST_REFUSED = 1000
HTML = ("", "text/html", "application/xhtml+xml")
REFUSED: dict[str, Any] = {"status": 0, "type": "", "body": ""}


class Visit:
    """Safe for threads. A request above a limit is refused and the page goes on without it; one that asks without end fails."""

    def __init__(self, url: str, *, ask: Ask, limits: RenderLimits) -> None:
        self._origin = origin(url)
        self._ask = ask
        self._limits = limits
        self._lock = Lock()
        self.requests = self.bytes = self.refused = 0
        self.document: Answer | None = None
        self.problem = ""  # why there is no document

    def note_refused(self) -> None:
        with self._lock:
            self.refused += 1

    @property
    def is_flood(self) -> bool:
        return self.refused > MOST_REFUSED

    def answer(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """The frame that goes back to the browser."""
        given = self._document(wanted) if wanted["kind"] == "document" else self._resource(wanted)
        return {"answer": wanted["ask"], **(given or REFUSED)}

    def _document(self, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
        """The page itself, and where its scripts go within the site."""
        url = wanted["url"]
        if origin(url) != self._origin:
            return self._without(f"it leads to {origin(url)}")
        answer = self._get(url, accept=wanted["accept"])
        if answer is None:
            return None
        target = _target(answer)
        if target:
            return _moved(target) if origin(target) == self._origin else self._without(f"it leads to {target[:500]}")
        if answer.status != 200:
            return self._without(f"the server answers {answer.status}")
        if answer.media_type not in HTML or answer.cut:
            return self._without("it is no page, or too large")
        self.document = answer
        return _given(answer)

    def _resource(self, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
        url = wanted["url"]
        for _ in range(HOPS):
            answer = self._get(url, accept=wanted["accept"])
            if answer is None:
                return None
            target = _target(answer)
            if not target:
                return _given(answer) if not answer.cut else self._without("")
            url = target
        return self._without("")

    def _get(self, url: str, *, accept: str) -> Answer | None:
        with self._lock:
            left = min(self._limits.max_answer_bytes, self._limits.max_bytes - self.bytes)
            may = self.requests < self._limits.max_requests and left > 0
            self.requests += may
        if not may:
            return self._without("it asks for too much")
        try:
            answer = self._ask(absolute(url, base=url), max_bytes=left, accept=_plain(accept))
        except FetchFailed as failure:
            return self._without(failure.message)
        except UrlRefused as refused:
            return self._without(str(refused))
        with self._lock:
            self.bytes += len(answer.body)
            fits = self.bytes <= self._limits.max_bytes
        return answer if fits else self._without("it asks for too much")

    def _without(self, problem: str) -> None:
        self.problem = self.problem or problem
        self.note_refused()


def _target(answer: Answer) -> str:
    if not 300 <= answer.status < 400 or not answer.location:
        return ""
    try:
        return absolute(answer.location, base=answer.url)
    except UrlRefused:
        return ""


def _given(answer: Answer) -> dict[str, Any]:
    kind = answer.headers.get("content-type", "") or "text/html"
    return {"status": answer.status, "type": kind[:200], "body": base64.b64encode(answer.body).decode("ascii")}


def _moved(target: str) -> dict[str, Any]:
    """A redirect told by a page: the browser follows one in a header by itself, without asking."""
    quoted = json.dumps(target).replace("<", "\\u003c")
    page = f"<script>location.replace({quoted})</script>".encode()
    return {"status": 200, "type": "text/html; charset=utf-8", "body": base64.b64encode(page).decode("ascii")}


def _plain(accept: str) -> str:
    return accept[:200] if accept.isascii() and accept.isprintable() else "*/*"
