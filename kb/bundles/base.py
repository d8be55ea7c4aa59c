"""What a bundle holds: configurations of knowledge bases, without documents, files and values of secrets."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kb.schemas.parameters import REFERENCE

MAX_KNOWLEDGE_BASES = 500


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was not taken as it stood: converted (`new`) or left out. A value that may be secret is not repeated."""

    path: str
    message: str
    old: Any = None
    new: Any = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One knowledge base of a bundle. `where` says which, for messages; `id` is what it had where it was exported."""

    where: str
    document: dict[str, Any]
    id: UUID | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Export:
    """A version on its way out."""

    id: UUID
    version: int
    document: dict[str, Any]

    @property
    def name(self) -> str:
        return self.document["name"]


def secret_names(value: Any) -> list[str]:
    """Names of the secrets that a document refers to, sorted; who imports it has to have them."""
    return sorted(set(_references(value)))


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, str) and (match := REFERENCE.fullmatch(value)):
        yield match[1]
