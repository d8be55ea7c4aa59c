"""What a rendering is asked for, what comes of it, and why none came."""

from dataclasses import dataclass
from typing import Protocol

from ingestion.crawl.fetch import Answer

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """For one page. Memory is that of the browser with all its processes and of its driver, shared pages counted once."""

    max_seconds: float = 20.0
    idle_seconds: float = 5.0  # how long the page may go on asking for data after its last script came
    max_memory_mb: int = 1024
    max_requests: int = 50
    max_bytes: int = 20 * MEBIBYTE  # of all answers
    max_answer_bytes: int = 5 * MEBIBYTE
    max_html_bytes: int = 5 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Rendered:
    """`document` is the answer that the page began as, `url` what the address line says in the end: scripts may have moved on within
    the site. `refused` is how much the page asked for that it did not get."""

    url: str
    html: bytes
    document: Answer
    requests: int
    bytes: int
    refused: int
    seconds: float


class RenderFailed(Exception):
    """`reason`: no_browser, render_timeout, render_limit or render_failed. The message says what happened and what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Ask(Protocol):
    """One guarded GET whose redirect is not followed. Called from several threads; raises FetchFailed for what may not be asked or
    gives no answer."""

    def __call__(self, url: str, *, max_bytes: int, accept: str) -> Answer: ...
