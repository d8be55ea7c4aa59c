"""What one statement for candidates was, for whoever asks how an answer was found: the plan, and what it was chosen by."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from kb.models import EmbeddingSpace
from kb.stores import vectors, words
from kb.stores.scope import Scope
from retrieval.explanation import ExplainedSide


def vector_side(
    space: EmbeddingSpace,
    plan: str,
    *,
    mode: str,
    bases: Sequence[UUID],
    scope: dict[str, Any],
    depth: int,
    found: int,
    spent: float,
    ef: int | None = None,
) -> ExplainedSide:
    """`scope` is what the search was narrowed by: `organization`, and `documents` or None. `ef` is what was asked of an index."""
    settled, rows = Scope(scope["organization"], bases, scope["documents"]).settle()
    ours = plan in vectors.PLANS
    return ExplainedSide(
        side="vectors",
        knowledge_bases=list(bases),
        mode=mode,
        embedding_model=space.embedding_model.name,
        plan=plan,
        in_scope=rows if ours else None,
        exact_up_to=(vectors.EXACT_ROWS_OF_DOCUMENTS if settled.is_narrowed else vectors.EXACT_ROWS) if ours else None,
        ef_search=vectors.ef_for(depth, ef) if ours and plan != vectors.EXACT else None,
        depth=depth,
        found=found,
        milliseconds=round(spent, 2),
    )


def word_side(plan: str, *, mode: str, bases: Sequence[UUID], scope: dict[str, Any], depth: int, found: int, spent: float) -> ExplainedSide:
    _, rows = Scope(scope["organization"], bases, scope["documents"]).settle()
    return ExplainedSide(
        side="words",
        knowledge_bases=list(bases),
        mode=mode,
        embedding_model=None,
        plan=plan,
        in_scope=rows,
        exact_up_to=words.EXACT_CHUNKS,
        ef_search=None,
        depth=depth,
        found=found,
        milliseconds=round(spent, 2),
    )
