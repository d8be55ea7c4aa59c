"""Evaluations of a knowledge base: figures of its answers over time."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.openapi import PAGE_PARAMETERS, Paged
from config.paging import limit_of, take_page
from kb import access
from kb.access import Level
from retrieval import jobs
from retrieval.api import evaluation_schemas as schemas
from retrieval.belonging import row_of, rows_of
from retrieval.evaluation import running
from retrieval.models import Evaluation


class Evaluations(APIView):
    @extend_schema(tags=["evaluation"], parameters=PAGE_PARAMETERS, responses=Paged[schemas.ShownEvaluation])
    def get(self, request: Request, kb_id: str) -> Response:
        """Past evaluations with their figures, newest first."""
        found = access.get_knowledge_base(request.user, kb_id)
        page = take_page(rows_of(found, Evaluation), cursor=request.query_params.get("cursor"), limit=limit_of(request))
        return Response({"items": [schemas.show_evaluation(one) for one in page.items], "next_cursor": page.next_cursor})

    @extend_schema(tags=["evaluation"], request=schemas.WantedEvaluation, responses={202: schemas.ShownEvaluation})
    def post(self, request: Request, kb_id: str) -> Response:
        """Ask every judged question in each way; a worker does it. 409 while one is under way."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        made = running.start_evaluation(request.user, found, parse_body(request, schemas.WantedEvaluation))
        return Response(schemas.show_evaluation(made), status=202)


class OneEvaluation(APIView):
    @extend_schema(tags=["evaluation"], responses=schemas.ShownEvaluation)
    def get(self, request: Request, kb_id: str, evaluation_id: str) -> Response:
        """One evaluation: how far it is, and its figures when it is done."""
        found = access.get_knowledge_base(request.user, kb_id)
        return Response(schemas.show_evaluation(row_of(found, Evaluation, evaluation_id)))

    @extend_schema(tags=["evaluation"], responses={204: None})
    def delete(self, request: Request, kb_id: str, evaluation_id: str) -> Response:
        """Forget an evaluation; one that is under way ends."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        row_of(found, Evaluation, evaluation_id).delete()
        return Response(status=204)


class EvaluationCancel(APIView):
    @extend_schema(tags=["evaluation"], request=None, responses=schemas.ShownEvaluation)
    def post(self, request: Request, kb_id: str, evaluation_id: str) -> Response:
        """End it; what was asked until now stays."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        evaluation = row_of(found, Evaluation, evaluation_id)
        jobs.cancel(evaluation)
        return Response(schemas.show_evaluation(evaluation))


class EvaluationQuestions(APIView):
    @extend_schema(tags=["evaluation"], parameters=PAGE_PARAMETERS, responses=Paged[schemas.ShownQuestion])
    def get(self, request: Request, kb_id: str, evaluation_id: str) -> Response:
        """The questions with what each way found for them, in the order in which they were judged."""
        found = access.get_knowledge_base(request.user, kb_id)
        rows = running.questions(row_of(found, Evaluation, evaluation_id))
        page = take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request), ordering=("place",))
        return Response({"items": schemas.show_questions(found, page.items), "next_cursor": page.next_cursor})
