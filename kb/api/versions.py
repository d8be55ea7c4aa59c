"""The history of a knowledge base: versions, what changed between two, rollback and duplicate."""

from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.errors import NotFound
from config.openapi import IDEMPOTENCY_KEY, PAGE_PARAMETERS, Paged, query
from config.paging import limit_of, take_page
from kb import access, listing, services, versioning
from kb.access import Level
from kb.api.idempotency import idempotent
from kb.api.knowledge_bases import IF_MATCH, VERSION, shown
from kb.api.parameters import etag, expected_version, is_unchanged, whole_number
from kb.api.shapes import (
    Diff,
    DiffChange,
    DuplicateInput,
    KnowledgeBaseAnswer,
    RollbackInput,
    Version,
    VersionDescriptor,
    answer,
    answer_page,
)
from kb.schemas import load_stored
from kb.schemas.diff import render


class Versions(APIView):
    @extend_schema(parameters=PAGE_PARAMETERS, responses=Paged[VersionDescriptor])
    def get(self, request: Request, kb_id: str) -> Response:
        """Every version, newest first: who, when and why."""
        rows = listing.versions(access.get_knowledge_base(request.user, kb_id))
        page = take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request), ordering=("-number",))
        return answer_page(page, VersionDescriptor)


class OneVersion(APIView):
    @extend_schema(responses=Version)
    def get(self, request: Request, kb_id: str, number: str) -> Response:
        """One version with its document. A version never changes."""
        found = access.get_knowledge_base(request.user, kb_id)
        if not (number.isascii() and number.isdigit() and len(number) <= 9):
            raise NotFound()
        version = versioning.read(found, int(number))
        if is_unchanged(request, version.number):
            return Response(status=304, headers={"ETag": etag(version.number)})
        shape = Version(
            number=version.number,
            comment=version.comment,
            author_name=version.author_name,
            created_at=version.created_at,
            is_current=version.id == found.current_id,
            document=load_stored(version.document),
        )
        return answer(shape, headers={"ETag": etag(version.number)})


class VersionDiff(APIView):
    @extend_schema(
        operation_id="knowledge_bases_diff",
        parameters=[query("from", "A version's number; the one before `to` without.", int), query("to", "The current one without.", int)],
        responses=Diff,
    )
    def get(self, request: Request, kb_id: str) -> Response:
        """What changed between two versions, as a list and as text."""
        found = access.get_knowledge_base(request.user, kb_id)
        compared = versioning.compare(found, old=whole_number(request, "from"), new=whole_number(request, "to"))
        changes = [DiffChange(**asdict(change)) for change in compared.changes]
        return answer(Diff(from_version=compared.old, to_version=compared.new, changes=changes, text=render(compared.changes)))


class Rollback(APIView):
    @extend_schema(parameters=[IDEMPOTENCY_KEY, IF_MATCH, VERSION], request=RollbackInput, responses=KnowledgeBaseAnswer)
    @idempotent(atomic=True)
    def post(self, request: Request, kb_id: str) -> Response:
        """Publish an old document again, as the next version."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        expected = expected_version(request, current=versioning.read(found).number)
        body = parse_body(request, RollbackInput)
        removed = versioning.find_removals(found, document=versioning.restored(found, body.to), expected=expected)
        version = versioning.roll_back(found, to=body.to, expected=expected, actor=request.user, comment=body.comment)
        return shown(found, version, removed=removed)


class Duplicate(APIView):
    @extend_schema(parameters=[IDEMPOTENCY_KEY], request=DuplicateInput, responses={201: KnowledgeBaseAnswer})
    @idempotent(atomic=True)
    def post(self, request: Request, kb_id: str) -> Response:
        """A new knowledge base with the same configuration under new ids; its upload sources are empty."""
        found = access.get_knowledge_base(request.user, kb_id)
        body = parse_body(request, DuplicateInput)
        copied = services.duplicate_knowledge_base(request.user, found, name=body.name, number=body.version)
        return shown(copied, versioning.read(copied), status=201)
