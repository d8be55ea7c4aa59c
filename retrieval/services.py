"""What the API, the admin and workflows ask of retrieval."""

from collections.abc import Sequence
from dataclasses import dataclass

from kb.access import Actor
from retrieval.encoding import QueryVectors
from retrieval.requests import CompareRequest, Variant
from retrieval.search import Answer, RetrievalFailed, search
from retrieval.traces import get_trace, visible_traces

__all__ = ["Comparison", "compare_searches", "get_trace", "search", "visible_traces"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One variant's answer, or why it has none."""

    variant: Variant
    answer: Answer | None
    failure: RetrievalFailed | None = None


def compare_searches(actor: Actor, request: CompareRequest) -> Sequence[Comparison]:
    """The same question under each of several settings. A variant that fails stands beside the others; the question is embedded once."""
    vectors = QueryVectors(request.query, actor.organization.pk)
    compared = []
    for variant in request.variants:
        try:
            compared.append(Comparison(variant, search(actor, request.request_for(variant), vectors=vectors)))
        except RetrievalFailed as failure:
            compared.append(Comparison(variant, None, failure))
    return compared
