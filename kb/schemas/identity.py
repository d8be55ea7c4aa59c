"""Identities of sources: a source that is renamed, moved in the list or edited stays the same source."""

from typing import Any

import uuid_utils.compat as uuids

from config.errors import InvalidInput
from kb.schemas.base import fold
from kb.schemas.knowledge_base import KnowledgeBaseDocument
from kb.schemas.loading import dump, load_stored
from kb.schemas.source import Source


def assign_source_ids(document: KnowledgeBaseDocument, previous: KnowledgeBaseDocument | None) -> KnowledgeBaseDocument:
    """Every source with its id: matched to `previous` by id, else by name (of the same type); new ones get an id of their own.

    An id that `previous` does not have is InvalidInput. Another type under a kept id is taken as meant: it starts empty.
    """
    before = {source.id: source for source in previous.sources if source.id} if previous else {}
    claimed = {source.id for source in document.sources if source.id}
    by_name = {fold(source.name): source for source in before.values() if source.id not in claimed}
    errors: list[dict[str, str]] = []
    sources: list[Source] = []
    for source in document.sources:
        if source.id is None:
            known = by_name.get(fold(source.name))
            same = known is not None and known.type == source.type
            sources.append(_with_id(source, known.id if known and same else None))
            continue
        if source.id not in before:
            message = "is not a source of this knowledge base. Leave it out to make a new source."
            errors.append({"path": f"sources[{source.name}].id", "message": message})
        sources.append(source)
    if errors:
        first = errors[0]
        raise InvalidInput(f"The knowledge base is not valid. {first['path']}: {first['message']}", errors=errors)
    return document.model_copy(update={"sources": sources})


def without_source_ids(document: KnowledgeBaseDocument) -> KnowledgeBaseDocument:
    """For import: what comes from elsewhere has no sources here yet."""
    return document.model_copy(update={"sources": [source.model_copy(update={"id": None}) for source in document.sources]})


def duplicate(document: KnowledgeBaseDocument, name: str) -> KnowledgeBaseDocument:
    """The same configuration under another name, with new sources: upload sources start empty, web sources crawl afresh."""
    values: dict[str, Any] = {**dump(without_source_ids(document)), "name": name}
    return assign_source_ids(load_stored(values), None)


def _with_id(source: Source, known: str | None) -> Source:
    return source.model_copy(update={"id": known or str(uuids.uuid7())})
