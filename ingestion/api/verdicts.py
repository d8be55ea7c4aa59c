"""What became of each document of a run: pages of JSON, or all of it as CSV."""

import csv
import io
from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.openapi import PAGE_PARAMETERS, Paged, query
from config.paging import limit_of, take_page
from ingestion.api.parameters import choice_of, text_of
from ingestion.api.runs import get_run
from ingestion.models import RunItem
from ingestion.services.verdicts import find_items

CSV_PAGE = 500
FORMULA_STARTS = ("=", "+", "-", "@", "|", "%")


class Verdict(BaseModel):
    """One document of a run; `verdict` is null while it is being worked."""

    id: int
    document_id: UUID | None
    name: str
    title: str
    stage: str
    verdict: str | None = Field(description="ingested, unchanged, skipped, failed or removed.")
    reason: str | None = Field(description="A code, such as no_text, encrypted or superseded.")
    error: str | None
    warnings: list[str]
    chunks: int
    embeddings_computed: int
    embeddings_reused: int
    tokens: int
    size: int
    changed_at: datetime


COLUMNS = tuple(Verdict.model_fields)


class CsvRows(JSONRenderer):
    """Makes `Accept: text/csv` acceptable. The rows are streamed by the view; what comes here are errors, which are JSON."""

    media_type = "text/csv"
    format = "csv"


class RunDocumentsView(APIView):
    renderer_classes = [JSONRenderer, CsvRows]

    @extend_schema(
        operation_id="list_run_documents",
        responses={200: Paged[Verdict], (200, "text/csv"): OpenApiTypes.STR},
        parameters=[
            query("verdict", f"One of {', '.join(RunItem.Verdict.values)}.", enum=RunItem.Verdict.values),
            query("reason", "A code, such as no_text."),
            query("q", "Words that stand in the title or the name."),
            *PAGE_PARAMETERS,
        ],
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str) -> HttpResponseBase:
        """In the order in which they were found. As CSV, all of them in one answer."""
        rows = find_items(
            get_run(request, run_id),
            verdict=choice_of(request, "verdict", RunItem.Verdict.values),
            reason=text_of(request, "reason"),
            query=text_of(request, "q"),
        )
        if request.accepted_renderer.media_type == CsvRows.media_type:
            return _csv(rows, run_id)
        page = take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request), ordering=("id",))
        return Response({"items": [verdict_row(item).model_dump(mode="json") for item in page.items], "next_cursor": page.next_cursor})


def verdict_row(item: RunItem) -> Verdict:
    return Verdict(
        id=item.id,
        document_id=item.document_id,
        name=item.key,
        title=item.title,
        stage=item.stage,
        verdict=item.verdict or None,
        reason=item.reason or None,
        error=item.error or None,
        warnings=item.warnings,
        chunks=item.chunks,
        embeddings_computed=item.embeddings_computed,
        embeddings_reused=item.embeddings_reused,
        tokens=item.tokens,
        size=item.size,
        changed_at=item.changed_at,
    )


def _csv(rows: QuerySet[RunItem], run_id: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(csv_lines(rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="run-{run_id}.csv"'
    return response


async def csv_lines(rows: QuerySet[RunItem]) -> AsyncIterator[bytes]:
    """The whole list, page by page; asynchronous, because the web server would hold a plain iterator in memory whole."""
    yield _line(COLUMNS)
    after = 0
    while page := await sync_to_async(_page)(rows, after):
        after = page[-1].id
        yield b"".join(_line([getattr(verdict_row(item), column) for column in COLUMNS]) for item in page)


def _page(rows: QuerySet[RunItem], after: int) -> list[RunItem]:
    return list(rows.filter(id__gt=after).order_by("id")[:CSV_PAGE])


def _line(values: object) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow([_cell(value) for value in values])
    return line.getvalue().encode("utf-8")


def _cell(value: object) -> object:
    """Text that a spreadsheet would take for a formula gets a quote in front: names and titles come from strangers."""
    if isinstance(value, list):
        value = " ".join(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and (value.startswith(("\t", "\r", "\n")) or value.lstrip().startswith(FORMULA_STARTS)):
        return f"'{value}"
    return "" if value is None else value
