"""Knowledge bases: the list, one with its current document, publish and delete."""

from collections.abc import Sequence

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.openapi import IDEMPOTENCY_KEY, PAGE_PARAMETERS, Paged, header, query
from config.paging import limit_of, take_page
from kb import access, listing, services, versioning
from kb.access import Level
from kb.api.idempotency import idempotent
from kb.api.parameters import comment_of, etag, expected_version, flag, is_unchanged
from kb.api.shapes import Descriptor, EmbeddingsAnswer, KnowledgeBaseAnswer, RemovedSource, answer, answer_page
from kb.embedding_status import look
from kb.models import KnowledgeBase, KnowledgeBaseVersion
from kb.schemas import KnowledgeBaseDocument, load_stored
from kb.schemas.describe import json_schema

COMMENT = query("comment", "What this version is for; shown in its history.")
IF_MATCH = header("If-Match", "The ETag of the version that was edited; or ?version=. Neither: 428, a stale one: 409.")
VERSION = query("version", "The number of the version that was edited, instead of If-Match.", int)
ROUTE = "/api/v1/knowledge-bases"


class KnowledgeBases(APIView):
    @extend_schema(parameters=[*PAGE_PARAMETERS, query("name", "Part of the name, capitals do not count.")], responses=Paged[Descriptor])
    def get(self, request: Request) -> Response:
        """The knowledge bases that you may see, newest first."""
        rows = listing.descriptors(request.user, name=request.query_params.get("name", ""))
        return answer_page(take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request)), Descriptor)

    @extend_schema(parameters=[IDEMPOTENCY_KEY, COMMENT], request=KnowledgeBaseDocument, responses={201: KnowledgeBaseAnswer})
    @idempotent(atomic=True)
    def post(self, request: Request) -> Response:
        """Make a knowledge base: the body is its document, and becomes version 1. Needs the role of an editor."""
        access.require(request.user, Level.EDIT)
        document = parse_body(request, dict)
        made = services.create_knowledge_base(request.user, document=document, comment=comment_of(request))
        return shown(made, versioning.read(made), status=201)


class KnowledgeBaseSchema(APIView):
    @extend_schema(operation_id="knowledge_bases_schema", responses=OpenApiResponse({"type": "object"}, "A JSON Schema (2020-12)."))
    def get(self, request: Request) -> Response:
        """JSON Schema of the document of a knowledge base."""
        return Response(json_schema())


class OneKnowledgeBase(APIView):
    @extend_schema(parameters=[header("If-None-Match", "304 if this is the current version.")], responses=KnowledgeBaseAnswer)
    def get(self, request: Request, kb_id: str) -> Response:
        """A knowledge base with its current document, and how its embeddings stand. The ETag is of the document alone."""
        found = access.get_knowledge_base(request.user, kb_id)
        version = versioning.read(found)
        if is_unchanged(request, version.number):
            return Response(status=304, headers={"ETag": etag(version.number)})
        return shown(found, version)

    @extend_schema(parameters=[IF_MATCH, VERSION, COMMENT], request=KnowledgeBaseDocument, responses=KnowledgeBaseAnswer)
    def put(self, request: Request, kb_id: str) -> Response:
        """Publish the body as the next version. A source that it leaves out goes with its documents, chunks and files."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        expected = expected_version(request, current=versioning.read(found).number)
        document = parse_body(request, dict)
        removed = versioning.find_removals(found, document=document, expected=expected)
        version = versioning.publish(found, document=document, expected=expected, actor=request.user, comment=comment_of(request))
        return shown(found, version, removed=removed)

    @extend_schema(parameters=[query("force", "Also while workflows or agents use it.", bool, default=False)], responses={204: None})
    def delete(self, request: Request, kb_id: str) -> Response:
        """Take the knowledge base away with everything in it. 409 names what uses it."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        services.delete_knowledge_base(found, force=flag(request, "force"))
        return Response(status=204)


def shown(
    knowledge_base: KnowledgeBase, version: KnowledgeBaseVersion, *, status: int = 200, removed: Sequence[versioning.Removal] = ()
) -> Response:
    shape = KnowledgeBaseAnswer(
        id=knowledge_base.id,
        name=knowledge_base.name,
        version=version.number,
        comment=version.comment,
        author_name=version.author_name,
        published_at=version.created_at,
        document=load_stored(version.document),
        embeddings=EmbeddingsAnswer.model_validate(look(knowledge_base)),
        removed_sources=[RemovedSource.model_validate(source) for source in removed],
    )
    headers = {"ETag": etag(version.number)}
    if status == 201:
        headers["Location"] = f"{ROUTE}/{knowledge_base.id}"
    return answer(shape, status=status, headers=headers)
