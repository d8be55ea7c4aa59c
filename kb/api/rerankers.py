"""The registry of rerankers: an organization's own, and those of the installation that every organization may use."""

from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.openapi import IDEMPOTENCY_KEY, PAGE_PARAMETERS, Paged
from config.paging import limit_of, take_page
from kb import access, reranking
from kb.api.embedding_models import SCOPE, SCOPES
from kb.api.idempotency import idempotent
from kb.api.parameters import one_of
from kb.api.shapes import RerankerAnswer, RerankerProbeAnswer, answer
from kb.embedding_models import require_registrar
from kb.models import Reranker
from kb.schemas import RerankerInput

ROUTE = "/api/v1/rerankers"


class Rerankers(APIView):
    @extend_schema(parameters=PAGE_PARAMETERS, responses=Paged[RerankerAnswer])
    def get(self, request: Request) -> Response:
        """The rerankers that knowledge bases and searches of your organization may name."""
        page = take_page(access.rerankers(request.user), cursor=request.query_params.get("cursor"), limit=limit_of(request))
        return Response({"items": [shape_of(row).model_dump(mode="json") for row in page.items], "next_cursor": page.next_cursor})

    @extend_schema(parameters=[IDEMPOTENCY_KEY, SCOPE], request=RerankerInput, responses={201: RerankerAnswer})
    @idempotent(atomic=True)
    def post(self, request: Request) -> Response:
        """Register a reranker, by an administrator. It is not called: see its test."""
        installation = one_of(request, "scope", SCOPES) == "installation"
        require_registrar(request.user, installation=installation)
        made = reranking.register_reranker(request.user, document=parse_body(request, dict), installation=installation)
        return answer(shape_of(made), status=201, headers={"Location": f"{ROUTE}/{made.id}"})


class OneReranker(APIView):
    @extend_schema(responses=RerankerAnswer)
    def get(self, request: Request, reranker_id: str) -> Response:
        """One registered reranker."""
        return answer(shape_of(reranking.get_reranker(request.user, reranker_id)))

    @extend_schema(request=RerankerInput, responses=RerankerAnswer)
    def put(self, request: Request, reranker_id: str) -> Response:
        """Replace what is registered. Another name is refused (409) while a knowledge base calls it by the present one."""
        found = reranking.get_reranker(request.user, reranker_id, change=True)
        return answer(shape_of(reranking.change_reranker(found, document=parse_body(request, dict))))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, reranker_id: str) -> Response:
        """Forget a reranker that no knowledge base names (409 otherwise)."""
        reranking.delete_reranker(reranking.get_reranker(request.user, reranker_id, change=True))
        return Response(status=204)


class RerankerTest(APIView):
    @extend_schema(operation_id="rerankers_test", request=None, responses=RerankerProbeAnswer)
    def post(self, request: Request, reranker_id: str) -> Response:
        """Score two passages, of which one answers the question. A failure is the provider's: 502 with what to do."""
        found = reranking.get_reranker(request.user, reranker_id, change=True)
        return answer(RerankerProbeAnswer(**asdict(reranking.probe_reranker(found, organization_id=request.user.organization.id))))


def shape_of(reranker: Reranker) -> RerankerAnswer:
    # Not validated: what is stored is shown also where today's rules would refuse it.
    return RerankerAnswer.model_construct(
        **reranking.document_of(reranker), id=reranker.id, scope="installation" if reranker.organization_id is None else "organization"
    )
