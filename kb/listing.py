"""Lists of what an actor may see, with the numbers that lists show."""

from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, Case, Count, F, Q, QuerySet, Value, When

from config.errors import Forbidden
from kb import access
from kb.access import Actor, Level
from kb.models import Chunk, Document, File, Grant, KnowledgeBase, KnowledgeBaseVersion, Membership, Secret, Source


def descriptors(actor: Actor, *, name: str = "") -> QuerySet[KnowledgeBase]:
    """What is not hidden, with `version`, `web_sources` and `upload_sources`."""
    rows = access.knowledge_bases(actor).filter(hidden=False)
    if name:
        rows = rows.filter(name__icontains=name.replace("\0", ""))
    return rows.annotate(version=F("current__number"), web_sources=_sources(Source.Kind.WEB), upload_sources=_sources(Source.Kind.UPLOAD))


def versions(knowledge_base: KnowledgeBase) -> QuerySet[KnowledgeBaseVersion]:
    """Of a knowledge base that the actor was let into, without documents, with `is_current`."""
    current = Case(When(id=knowledge_base.current_id, then=Value(True)), default=Value(False), output_field=BooleanField())
    return KnowledgeBaseVersion.objects.filter(knowledge_base=knowledge_base).defer("document").annotate(is_current=current)


def grants(knowledge_base: KnowledgeBase) -> QuerySet[Grant]:
    return Grant.objects.filter(knowledge_base=knowledge_base).select_related("user")


def members(actor: Actor) -> QuerySet[Membership]:
    return access.own_rows(actor, Membership, Level.ADMIN).select_related("user")


def secrets(actor: Actor, *, installation: bool = False) -> QuerySet[Secret]:
    """Names for those who may write documents that refer to them."""
    if installation:
        access.require_operator(actor)
        return Secret.objects.filter(organization=None)
    if actor.is_limited:
        raise Forbidden("This API key is limited to named knowledge bases; secrets are the organization's. Use a key without that limit.")
    return access.own_rows(actor, Secret, Level.EDIT)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a knowledge base holds, and what its deletion removes."""

    sources: int
    documents: int
    chunks: int
    files: int


def contents(knowledge_base: KnowledgeBase) -> Contents:
    of_document, of_version = (Q(**{f"{way}__knowledge_base": knowledge_base}) for way in ("documents", "resource"))
    return Contents(
        sources=Source.objects.filter(knowledge_base=knowledge_base).count(),
        documents=Document.objects.filter(knowledge_base=knowledge_base).count(),
        chunks=Chunk.objects.filter(organization=knowledge_base.organization_id, knowledge_base=knowledge_base).count(),
        files=File.objects.filter(of_document | of_version).distinct().count(),
    )


def _sources(kind: str) -> Any:
    return Count("sources", filter=Q(sources__kind=kind, sources__state=Source.State.ACTIVE), distinct=True)
