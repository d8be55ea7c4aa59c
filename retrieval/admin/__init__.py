"""Pages of retrieval: searches and their traces, judgements, evaluations, recall checks."""

from retrieval.admin import evaluations, judgements, recall, traces

__all__ = ["evaluations", "judgements", "recall", "traces"]
