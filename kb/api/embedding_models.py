"""The registry of embedding models: an organization's own, and those of the installation that every organization may use."""

from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.openapi import IDEMPOTENCY_KEY, PAGE_PARAMETERS, Paged, query
from config.paging import limit_of, take_page
from kb import access, embedding_models
from kb.api.idempotency import idempotent
from kb.api.parameters import one_of
from kb.api.shapes import EmbeddingModelAnswer, ProbeAnswer, answer
from kb.models import EmbeddingModel
from kb.schemas import EmbeddingModelInput

SCOPES = ("organization", "installation")
SCOPE = query("scope", "Whose it becomes: `installation` only by an operator with a session.", enum=SCOPES, default="organization")
ROUTE = "/api/v1/embedding-models"


class EmbeddingModels(APIView):
    @extend_schema(parameters=PAGE_PARAMETERS, responses=Paged[EmbeddingModelAnswer])
    def get(self, request: Request) -> Response:
        """The models that knowledge bases of your organization may name."""
        rows = access.embedding_models(request.user).select_related("space")
        page = take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request))
        return Response({"items": [shape_of(row).model_dump(mode="json") for row in page.items], "next_cursor": page.next_cursor})

    @extend_schema(parameters=[IDEMPOTENCY_KEY, SCOPE], request=EmbeddingModelInput, responses={201: EmbeddingModelAnswer})
    @idempotent(atomic=True)
    def post(self, request: Request) -> Response:
        """Register a model, by an administrator. Its space is made at once, and ready when a worker attached its partition."""
        installation = one_of(request, "scope", SCOPES) == "installation"
        embedding_models.require_registrar(request.user, installation=installation)
        made = embedding_models.register_model(request.user, document=parse_body(request, dict), installation=installation)
        return answer(shape_of(made), status=201, headers={"Location": f"{ROUTE}/{made.id}"})


class OneEmbeddingModel(APIView):
    @extend_schema(responses=EmbeddingModelAnswer)
    def get(self, request: Request, model_id: str) -> Response:
        """One registered model."""
        return answer(shape_of(embedding_models.get_model(request.user, model_id)))

    @extend_schema(request=EmbeddingModelInput, responses=EmbeddingModelAnswer)
    def put(self, request: Request, model_id: str) -> Response:
        """Replace what is registered. What changes vectors is refused (409) while a knowledge base uses the model."""
        found = embedding_models.get_model(request.user, model_id, change=True)
        return answer(shape_of(embedding_models.change_model(found, document=parse_body(request, dict))))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, model_id: str) -> Response:
        """Forget a model that nothing uses (409 otherwise)."""
        embedding_models.delete_model(embedding_models.get_model(request.user, model_id, change=True))
        return Response(status=204)


class EmbeddingModelTest(APIView):
    @extend_schema(operation_id="embedding_models_test", request=None, responses=ProbeAnswer)
    def post(self, request: Request, model_id: str) -> Response:
        """Embed two sentences by the model, as a worker would. A failure is the provider's: 502 with what to do."""
        found = embedding_models.get_model(request.user, model_id, change=True)
        probe = embedding_models.probe_model(found, organization_id=request.user.organization.id)
        return answer(ProbeAnswer(**asdict(probe)))


def shape_of(model: EmbeddingModel) -> EmbeddingModelAnswer:
    # Not validated: what is stored is shown also where today's rules would refuse it.
    space = getattr(model, "space", None)
    return EmbeddingModelAnswer.model_construct(
        **embedding_models.document_of(model),
        id=model.id,
        scope="installation" if model.organization_id is None else "organization",
        is_ready=space is not None and space.provisioned_at is not None,
    )
