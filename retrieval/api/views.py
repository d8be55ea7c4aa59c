"""Routes of retrieval: search, comparison of settings, traces."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.paging import DEFAULT_LIMIT, MAX_LIMIT, limit_of, take_page
from retrieval import services
from retrieval.api.schemas import (
    Compare,
    CompareAnswer,
    Search,
    SearchAnswer,
    Trace,
    TracePage,
    show_answer,
    show_comparison,
    show_trace,
    summarise_trace,
)

MAX_BODY = 2 * 1024 * 1024
_PROBLEM = OpenApiResponse(OpenApiTypes.OBJECT, description="Problem details (RFC 9457).")
_FAILED = OpenApiResponse(
    OpenApiTypes.OBJECT, description="The store or the embedding model failed: problem details with `reason` and `trace_id`."
)
_REFUSED = {400: _PROBLEM, 401: _PROBLEM, 404: _PROBLEM}


class SearchView(APIView):
    """Passages for a question."""

    @extend_schema(
        operation_id="search",
        summary="Find passages",
        tags=["retrieval"],
        request=Search,
        responses={200: SearchAnswer, **_REFUSED, 503: _FAILED},
    )
    def post(self, request: Request) -> Response:
        answer = services.search(request.user, parse_body(request, Search, max_bytes=MAX_BODY))
        return Response(show_answer(answer))


class CompareView(APIView):
    """The same question under several settings."""

    @extend_schema(
        operation_id="compare_searches",
        summary="Ask the same under several settings",
        description="A variant that fails says why beside the others; the answer is 200.",
        tags=["retrieval"],
        request=Compare,
        responses={200: CompareAnswer, **_REFUSED},
    )
    def post(self, request: Request) -> Response:
        asked = parse_body(request, Compare, max_bytes=MAX_BODY)
        compared = services.compare_searches(request.user, asked)
        return Response({"query": asked.query, "results": [show_comparison(one) for one in compared]})


class TracesView(APIView):
    """Past retrievals, newest first."""

    @extend_schema(
        operation_id="list_traces",
        summary="List retrievals",
        description="Those whose knowledge bases you can all see, newest first.",
        tags=["retrieval"],
        parameters=[
            OpenApiParameter("cursor", str, description="`next_cursor` of the page before."),
            OpenApiParameter("limit", int, description=f"Most items of one page, {DEFAULT_LIMIT} by default, {MAX_LIMIT} at most."),
        ],
        responses={200: TracePage, 400: _PROBLEM, 401: _PROBLEM},
    )
    def get(self, request: Request) -> Response:
        page = take_page(
            services.visible_traces(request.user), cursor=request.query_params.get("cursor"), limit=limit_of(request, DEFAULT_LIMIT)
        )
        return Response({"items": [summarise_trace(trace) for trace in page.items], "next_cursor": page.next_cursor})


class TraceView(APIView):
    """One retrieval."""

    @extend_schema(
        operation_id="get_trace",
        summary="Read a retrieval",
        tags=["retrieval"],
        parameters=[OpenApiParameter("trace_id", OpenApiTypes.UUID, OpenApiParameter.PATH)],
        responses={200: Trace, 401: _PROBLEM, 404: _PROBLEM},
    )
    def get(self, request: Request, trace_id: str) -> Response:
        return Response(show_trace(services.get_trace(request.user, trace_id)))
