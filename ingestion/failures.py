"""Codes of failures of files: whether the same bytes, tried again, may well be read. What was refused on its content may not."""

RETRYABLE = frozenset(
    (
        *("time_limit", "memory_limit", "crashed", "worker_died", "quarantined"),  # killed; a quieter machine may do it
        *(
            "internal",
            "unavailable",
            "stored_damaged",
            "embedding_failed",
            "segment_limit",
            "budget_exhausted",
        ),  # our fault, a service's, or a budget's
        *("interrupted", "run_closed"),
    )
)


def is_retryable(reason: str) -> bool:
    return reason in RETRYABLE
