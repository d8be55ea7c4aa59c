"""Texts for people: a version's document as they edit it, and numbers of things."""

from typing import Any

from kb import schemas
from kb.bundles.texts import write_document
from kb.models import KnowledgeBaseVersion


def text_of(version: KnowledgeBaseVersion) -> str:
    """In the order of the document's description; a JSON column forgets it."""
    return write_document(document_of(version))


def counted(number: int, name: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def document_of(version: KnowledgeBaseVersion) -> dict[str, Any]:
    return schemas.dump(schemas.load_stored(version.document))
