"""What became of each document of a run: pages of JSON, or all of it as CSV."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
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
from config.tenancy import carried
from ingestion.api.parameters import choice_of, text_of
from ingestion.api.runs import get_run
from ingestion.models import RunItem
from ingestion.services.verdicts import find_items, pages_that_led_to

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
    reason: str | None = Field(description="A code, such as no_text, robots or superseded.")
    error: str | None
    warnings: list[str]
    chunks: int
    embeddings_computed: int
    embeddings_reused: int
    tokens: int
    size: int
    url: str | None = Field(description="Of a page: the address as published, which was asked for. `name` is what it is known by.")
    depth: int | None = Field(description="Links from the start.")
    via: str | None = Field(description="How the crawl came to it: start, link, sitemap, redirect or canonical.")
    found_on: str | None = Field(description="The page that led there.")
    http_status: int | None
    target: str | None = Field(description="Where its redirect or canonical leads.")
    requests: int = Field(description="How often it was asked for over the network.")
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
            query("reason", "A code, such as no_text or out_of_scope."),
            query("q", "Words that stand in the title, the name or the address."),
            *PAGE_PARAMETERS,
        ],
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str) -> HttpResponseBase:
        """In the order in which they were found. As CSV, all of them in one answer."""
        rows = find_items(
            request.user,
            get_run(request, run_id),
            verdict=choice_of(request, "verdict", RunItem.Verdict.values),
            reason=text_of(request, "reason"),
            query=text_of(request, "q"),
        )
        if request.accepted_renderer.media_type == CsvRows.media_type:
            return _csv(rows, run_id)
        page = take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request), ordering=("id",))
        return Response({"items": [row.model_dump(mode="json") for row in verdict_rows(page.items)], "next_cursor": page.next_cursor})


def verdict_rows(items: Sequence[RunItem]) -> list[Verdict]:
    sources = pages_that_led_to(items)
    return [_row(item, sources) for item in items]


def _row(item: RunItem, sources: Mapping[int, str]) -> Verdict:
    response = item.response or {}
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
        url=item.url or None,
        depth=item.depth if item.via else None,
        via=item.via or None,
        found_on=sources.get(item.found_on or 0),
        http_status=response.get("status"),
        target=response.get("target"),
        requests=item.requests,
        changed_at=item.changed_at,
    )


def _csv(rows: QuerySet[RunItem], run_id: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(csv_lines(carried(partial(_page, rows))), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="run-{run_id}.csv"'
    return response


async def csv_lines(page_after: Callable[[int], list[Verdict]]) -> AsyncIterator[bytes]:
    """The whole list, page by page; asynchronous, because the web server would hold a plain iterator in memory whole."""
    yield _line(COLUMNS)
    after = 0
    while page := await sync_to_async(page_after)(after):
        after = page[-1].id
        yield b"".join(_line([getattr(row, column) for column in COLUMNS]) for row in page)


def _page(rows: QuerySet[RunItem], after: int) -> list[Verdict]:
    return verdict_rows(list(rows.filter(id__gt=after).order_by("id")[:CSV_PAGE]))


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
