"""Rows of a knowledge base that an actor was let into; its organization stands in every query."""

from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from config.errors import NotFound
from kb import access
from kb.models import KnowledgeBase

T = TypeVar("T", bound=Model)


def rows_of(knowledge_base: KnowledgeBase, model: type[T]) -> QuerySet[T]:
    return model._default_manager.filter(organization=knowledge_base.organization_id, knowledge_base=knowledge_base)


def row_of(knowledge_base: KnowledgeBase, model: type[T], identifier: str | UUID) -> T:
    """`NotFound` for an id that is absent or another knowledge base's."""
    found = rows_of(knowledge_base, model).filter(id=access.parse_id(identifier)).first()
    if found is None:
        raise NotFound()
    return found
