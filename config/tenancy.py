"""Whom the statements of this thread or task serve. Postgres shows and takes only rows of these organizations (row-level security).

Nobody is served until one of these functions says so: a request serves whom its authentication found, a task what it works on, a
command everyone. A thread starts with nobody, and so does what is read of an answer when its request is over: see `carried`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar
from uuid import UUID

P, T = ParamSpec("P"), TypeVar("T")

# The value of `lectern.organization` in a transaction: "" shows no rows, "*" all, "{uuid,uuid}" those of the organizations.
NOBODY, EVERYONE = "", "*"
_served: ContextVar[str] = ContextVar("organizations that statements serve", default=NOBODY)


def served() -> str:
    return _served.get()


def tenant(*organization_ids: UUID):
    """Inside, rows of these organizations and what belongs to the installation can be read, and rows of these be written."""
    return _serving(_text(organization_ids))


def everyone():
    """Inside, rows of all organizations: for what looks across them, such as an authentication, the sweep or an operator's command."""
    return _serving(EVERYONE)


def nobody():
    """Inside, no rows, until somebody is authenticated."""
    return _serving(NOBODY)


def serve(*organization_ids: UUID) -> None:
    """From here to the end of the surrounding `nobody()`: for authentications, which answer in the middle of a request."""
    _served.set(_text(organization_ids))


def serve_everyone() -> None:
    """As `serve`, for operators."""
    _served.set(EVERYONE)


def carried(work: Callable[P, T]) -> Callable[P, T]:
    """The work for whom is served now, to be done by another thread or when the request is over."""
    text = _served.get()

    def serving(*arguments: P.args, **options: P.kwargs) -> T:
        with _serving(text):
            return work(*arguments, **options)

    return serving


@contextmanager
def _serving(text: str) -> Iterator[None]:
    token = _served.set(text)
    try:
        yield
    finally:
        _served.reset(token)


def _text(organization_ids: tuple[UUID, ...]) -> str:
    if not all(isinstance(identifier, UUID) for identifier in organization_ids):
        raise TypeError("organizations are served by their ids")
    return f"{{{','.join(map(str, organization_ids))}}}" if organization_ids else NOBODY
