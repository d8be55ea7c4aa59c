"""The embeddings of a knowledge base: how they stand, and what an editor does about them."""

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.openapi import IDEMPOTENCY_KEY, query
from ingestion.api.parameters import flag_of
from ingestion.services import embeddings
from kb import access, space_changes
from kb.access import Level
from kb.api.idempotency import idempotent
from kb.api.shapes import EmbeddingsAnswer, answer
from kb.embedding_status import look


class Reembedded(BaseModel):
    """How far it is when the request is answered; workers do the rest."""

    reembedded: int = Field(description="Chunks that have a vector of the model that the current version names.")
    total: int = Field(description="Chunks that answer.")
    errors: list[str]
    embeddings: EmbeddingsAnswer


def shown(request: Request, kb_id: str) -> EmbeddingsAnswer:
    """As they stand now."""
    return EmbeddingsAnswer.model_validate(look(access.get_knowledge_base(request.user, kb_id)))


class EmbeddingsView(APIView):
    @extend_schema(operation_id="read_embeddings", responses=EmbeddingsAnswer, tags=["knowledge-bases"])
    def get(self, request: Request, kb_id: str) -> Response:
        """Which model answers, which one the current version names, how far a change is, and what is missing."""
        return answer(shown(request, kb_id))


class ReembedView(APIView):
    @extend_schema(
        operation_id="reembed",
        request=None,
        responses={202: Reembedded},
        parameters=[IDEMPOTENCY_KEY, query("reembed", "Compute every vector anew; paid ones are not reused.", bool, default=False)],
        tags=["knowledge-bases"],
    )
    @idempotent(atomic=False)
    def post(self, request: Request, kb_id: str) -> Response:
        """Bring embeddings and cuts up to what the current version says, in the background; searches are answered all the time. A change
        of model that failed or was stopped begins again where it was."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        done = embeddings.reembed(knowledge_base, actor=request.user, anew=flag_of(request, "reembed"))
        shape = Reembedded(reembedded=done.reembedded, total=done.total, errors=done.errors, embeddings=shown(request, kb_id))
        return answer(shape, status=202)


class CancelChangeView(APIView):
    @extend_schema(operation_id="cancel_embedding_change", request=None, responses=EmbeddingsAnswer, tags=["knowledge-bases"])
    def post(self, request: Request, kb_id: str) -> Response:
        """Stop a change of model; the model before goes on answering. 409 if none is under way."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        space_changes.cancel(knowledge_base, by=request.user.name)
        return answer(shown(request, kb_id))


class RollBackModelView(APIView):
    @extend_schema(
        operation_id="roll_back_embedding_model",
        request=None,
        responses=EmbeddingsAnswer,
        parameters=[IDEMPOTENCY_KEY],
        tags=["knowledge-bases"],
    )
    @idempotent(atomic=True)
    def post(self, request: Request, kb_id: str) -> Response:
        """Publish the current document with the model before. Its vectors stay for a grace period, so it answers at once; what was
        published since is embedded for it first. 409 if there is nothing to go back to."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        embeddings.roll_back_model(knowledge_base, actor=request.user)
        return answer(shown(request, kb_id))
