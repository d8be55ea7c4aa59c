"""Routes of retrieval: search, comparison of settings, traces."""

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.openapi import PAGE_PARAMETERS, Paged, Problem
from config.paging import limit_of, take_page
from retrieval import services
from retrieval.api import comparison, schemas

MAX_BODY = 2 * 1024 * 1024
_FAILED = OpenApiResponse(Problem, description="The store or the embedding model failed; `reason` and `trace_id` are members.")


class SearchView(APIView):
    @extend_schema(operation_id="search", tags=["retrieval"], request=schemas.Search, responses={200: schemas.SearchAnswer, 503: _FAILED})
    def post(self, request: Request) -> Response:
        """Find passages. An empty answer is 200 and says its reason."""
        answer = services.search(request.user, parse_body(request, schemas.Search, max_bytes=MAX_BODY))
        return Response(schemas.show_answer(answer))


class CompareView(APIView):
    @extend_schema(operation_id="search_compare", tags=["retrieval"], request=schemas.Compare, responses=comparison.CompareAnswer)
    def post(self, request: Request) -> Response:
        """Ask the same under several settings: each answer, and all side by side. A variant that fails says why beside the others."""
        asked = parse_body(request, schemas.Compare, max_bytes=MAX_BODY)
        compared = services.compare_searches(request.user, asked)
        return Response(comparison.show_comparison(asked.query, compared))


class TracesView(APIView):
    @extend_schema(operation_id="traces_list", tags=["retrieval"], parameters=PAGE_PARAMETERS, responses=Paged[schemas.TraceSummary])
    def get(self, request: Request) -> Response:
        """Past retrievals whose knowledge bases you can all see, newest first."""
        page = take_page(services.visible_traces(request.user), cursor=request.query_params.get("cursor"), limit=limit_of(request))
        return Response({"items": [schemas.summarise_trace(trace) for trace in page.items], "next_cursor": page.next_cursor})


class TraceView(APIView):
    @extend_schema(operation_id="traces_read", tags=["retrieval"], responses=schemas.Trace)
    def get(self, request: Request, trace_id: str) -> Response:
        """One retrieval as it was."""
        return Response(schemas.show_trace(services.get_trace(request.user, trace_id)))
