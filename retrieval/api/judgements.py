"""Judgements of a knowledge base: what its questions should find."""

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.errors import InvalidInput, TooLarge
from config.openapi import PAGE_PARAMETERS, Paged, query
from config.paging import limit_of, take_page
from kb import access
from kb.access import Level
from retrieval import services
from retrieval.api import evaluation_schemas as schemas
from retrieval.belonging import row_of, rows_of
from retrieval.evaluation import exchange, judging
from retrieval.models import Judgement

_FORM = query("form", "`json` or `csv`.", str, enum=["json", "csv"], default="json")


class Judgements(APIView):
    @extend_schema(tags=["evaluation"], parameters=PAGE_PARAMETERS, responses=Paged[schemas.ShownJudgement])
    def get(self, request: Request, kb_id: str) -> Response:
        """The judged questions, newest first."""
        found = access.get_knowledge_base(request.user, kb_id)
        page = take_page(rows_of(found, Judgement), cursor=request.query_params.get("cursor"), limit=limit_of(request))
        return Response({"items": schemas.show_judgements(found, page.items), "next_cursor": page.next_cursor})

    @extend_schema(tags=["evaluation"], request=schemas.WantedJudgement, responses={201: schemas.ShownJudgement})
    def post(self, request: Request, kb_id: str) -> Response:
        """Judge a question. 409 when it is judged already."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        made = judging.create_judgement(request.user, found, parse_body(request, schemas.WantedJudgement))
        return Response(schemas.show_judgement(found, made), status=201)


class JudgedHits(APIView):
    @extend_schema(tags=["evaluation"], request=schemas.WantedHits, responses=schemas.ShownJudgement)
    def post(self, request: Request, kb_id: str) -> Response:
        """Expect hits of a search for its question: added to the judgement of the question, or a new one."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        body = parse_body(request, schemas.WantedHits)
        trace = services.get_trace(request.user, body.trace_id)
        judged = judging.judge_hits(request.user, found, trace, body.citations, grade=body.grade)
        return Response(schemas.show_judgement(found, judged))


class JudgementFile(APIView):
    @extend_schema(
        operation_id="judgements_export",
        tags=["evaluation"],
        parameters=[_FORM],
        responses={200: schemas.ExportedJudgements, (200, "text/csv"): OpenApiTypes.STR},
    )
    def get(self, request: Request, kb_id: str) -> HttpResponse:
        """All judgements as a file."""
        found = access.get_knowledge_base(request.user, kb_id)
        return download(found.id, exchange.export_judgements(found), _form(request))

    @extend_schema(
        operation_id="judgements_import",
        tags=["evaluation"],
        request={"application/json": schemas.WantedJudgements, "text/csv": OpenApiTypes.STR},
        responses=schemas.ImportedJudgements,
    )
    def post(self, request: Request, kb_id: str) -> Response:
        """Take in a file, JSON or CSV by its content type, all or nothing. A question that is judged already is replaced."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        data = request.body
        if len(data) > exchange.MAX_BYTES:
            raise TooLarge(f"The file has {len(data):,} bytes; at most {exchange.MAX_BYTES:,} are taken. Split it.")
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        wanted = exchange.read_file(data, is_csv=kind == "text/csv")
        taken = exchange.import_judgements(request.user, found, wanted)
        return Response(schemas.ImportedJudgements.model_validate(taken).model_dump())


class OneJudgement(APIView):
    @extend_schema(tags=["evaluation"], responses=schemas.ShownJudgement)
    def get(self, request: Request, kb_id: str, judgement_id: str) -> Response:
        """One judgement, and whether what it expects is still there."""
        found = access.get_knowledge_base(request.user, kb_id)
        return Response(schemas.show_judgement(found, row_of(found, Judgement, judgement_id)))

    @extend_schema(tags=["evaluation"], request=schemas.WantedJudgement, responses=schemas.ShownJudgement)
    def put(self, request: Request, kb_id: str, judgement_id: str) -> Response:
        """Replace it. Documents that it expected already may stay, also where they are gone."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        judgement = row_of(found, Judgement, judgement_id)
        changed = judging.replace_judgement(request.user, judgement, parse_body(request, schemas.WantedJudgement))
        return Response(schemas.show_judgement(found, changed))

    @extend_schema(tags=["evaluation"], responses={204: None})
    def delete(self, request: Request, kb_id: str, judgement_id: str) -> Response:
        """Forget it; evaluations that used it keep what they found."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        row_of(found, Judgement, judgement_id).delete()
        return Response(status=204)


def download(kb_id: object, exported: list[dict], form: str) -> HttpResponse:
    """As a file with a name."""
    text = exchange.write_csv(exported) if form == "csv" else exchange.write_json(exported)
    kind = "text/csv; charset=utf-8" if form == "csv" else "application/json"
    return HttpResponse(
        text.encode(), content_type=kind, headers={"Content-Disposition": f'attachment; filename="judgements-{kb_id}.{form}"'}
    )


def _form(request: Request) -> str:
    form = request.query_params.get("form", "json")
    if form not in ("json", "csv"):
        message = "`form` must be json or csv."
        raise InvalidInput(message, errors=[{"path": "form", "message": message}])
    return form
