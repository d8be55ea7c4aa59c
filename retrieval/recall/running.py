"""A check of recall: sampled questions by the plan that a search would choose, and exactly, at several shares of the documents.

Nothing of a question is kept.
"""

import random
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction

from config.errors import InvalidInput
from kb import vector_stores
from kb.access import Actor
from kb.models import EmbeddingSpace, KnowledgeBase
from kb.schemas import load_stored
from retrieval import jobs
from retrieval.belonging import rows_of
from retrieval.jobs import Lease
from retrieval.models import RecallCheck
from retrieval.recall.figures import level_of
from retrieval.recall.probing import DEPTH, Ground, K, draw_documents, draw_questions, probe, suggest_ef, survey

KIND = "recall"
SELECTIVITIES = (1.0, 0.1, 0.01, 0.001)
# Below it somebody should look.
LEAST_RECALL = 0.95
MOST_QUERIES = 200
# Questions that an ef is tried with.
_TRIED = 20


def start_check(
    actor: Actor, knowledge_base: KnowledgeBase, *, queries: int = 50, seed: int | None = None, send: bool = True
) -> RecallCheck:
    """Open one. `Conflict` while one is open, `InvalidInput` where there is no model, or where its vectors lie in an external store."""
    if knowledge_base.space is None:
        raise InvalidInput("This knowledge base has no embedding model, so there are no vectors to look for.")
    if vector_stores.stores_of(knowledge_base):
        raise InvalidInput("The vectors of this knowledge base lie in an external store, whose index cannot be compared with a scan.")
    wanted = {
        "queries": min(max(queries, 1), MOST_QUERIES),
        "k": K,
        "depth": DEPTH,
        "seed": random.SystemRandom().randrange(2**31) if seed is None else seed,
        "embedding_model": knowledge_base.space.embedding_model.name,
        "space": knowledge_base.space_id,
        "ef_search": load_stored(knowledge_base.current.document).retrieval.ef_search,
    }
    with transaction.atomic():
        made = jobs.open_job(RecallCheck, actor, knowledge_base, settings=wanted, total=len(SELECTIVITIES))
        if send:
            jobs.send(KIND, made)
    return made


def work(lease: Lease) -> bool:
    """A slice: levels of selectivity that were not measured yet, each committed by itself; then the verdict."""
    check = lease.job
    space = EmbeddingSpace.objects.select_related("embedding_model").filter(id=check.settings["space"]).first()
    if space is None:
        raise InvalidInput("The embedding space is gone. Start another check.")
    ground = survey(check.organization_id, check.knowledge_base_id, space, ef_search=check.settings["ef_search"])
    vectors, note = draw_questions(ground, check.settings["queries"], seed=check.settings["seed"]) if ground.chunks else ([], "")
    if not vectors:
        raise InvalidInput("Nothing of this knowledge base has a vector of its model yet. Run its sources first.")
    notes = dict.fromkeys([*check.notes, *([note] if note else [])])
    for share in SELECTIVITIES[check.done : check.total]:
        level, told = _measure(check, ground, share, vectors)
        notes |= dict.fromkeys(told)
        check.done, check.levels = check.done + 1, [*check.levels, *([level] if level else [])]
        lease.advance(done=check.done, levels=check.levels, notes=list(notes))
        if lease.is_over:
            return False
    ef = _suggested(check, ground, vectors[:_TRIED])
    jobs.close(lease, recall=min(level["recall"] for level in check.levels), suggested_ef=ef)
    return True


def _measure(check: RecallCheck, ground: Ground, share: float, vectors: Sequence[np.ndarray]) -> tuple[dict[str, Any] | None, list[str]]:
    """The figures of a share of the documents, and notes. Time bounds how many questions are asked, at least one is."""
    if share * ground.documents < 1 and share < 1:
        return None, [f"{_percent(share)} of {ground.documents:,} documents is less than one: not measured."]
    draws = draw_documents(ground, share, seed=check.settings["seed"])
    until = time.monotonic() + settings.ENV.slice_seconds
    probes = [probe(ground, vectors[0], draws[0])]
    for place, vector in enumerate(vectors[1:], start=1):
        if time.monotonic() > until:
            break
        probes.append(probe(ground, vector, draws[place % len(draws)]))
    level = level_of(share, ground.documents if share >= 1 else len(draws[0] or ()), probes)
    cut = f"At {_percent(share)} time allowed {len(probes)} of {len(vectors)} questions."
    return level, [cut] if len(probes) < len(vectors) else []


def _suggested(check: RecallCheck, ground: Ground, vectors: Sequence[np.ndarray]) -> int | None:
    """An ef for the worst level, where one is needed."""
    worst = min(check.levels, key=lambda level: level["recall"])
    if worst["recall"] >= LEAST_RECALL:
        return None
    draws = draw_documents(ground, worst["selectivity"], seed=check.settings["seed"])
    return suggest_ef(ground, vectors, draws, least=LEAST_RECALL)


def warnings_of(check: RecallCheck) -> list[str]:
    """What somebody should know of a check that is done; none when all is well."""
    told = []
    if check.recall is not None and check.recall < LEAST_RECALL:
        worst = min(check.levels, key=lambda level: level["recall"])
        share = _percent(worst["selectivity"])
        told.append(f"Recall@{check.settings['k']} is {worst['recall']:.3f} at {share} of the documents, below {LEAST_RECALL}.")
        reached = f"An ef_search of {check.suggested_ef} reached it on the same questions: set retrieval.ef_search to it."
        lost = "No ef reached it: the index may have aged. Rebuild it (REINDEX INDEX CONCURRENTLY) and check again."
        told.append(reached if check.suggested_ef else lost)
    missing = sum(level["missing"] for level in check.levels)
    return [*told, f"{missing:,} rows that exist were not found."] if missing else told


def notices_of(knowledge_base: KnowledgeBase) -> list[str]:
    """The warnings of the latest check that is done, for the page of the knowledge base."""
    latest = rows_of(knowledge_base, RecallCheck).filter(recall__isnull=False).order_by("-created_at").first()
    if latest is None:
        return []
    return [f"Recall check of {latest.created_at:%Y-%m-%d}: {warning}" for warning in warnings_of(latest)]


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
