"""The pool of candidates read once more beside the question, and the fused order kept where that fails or takes too long."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from config.errors import LecternError
from kb.models import Reranker
from kb.rerankers import load_reranker, rerank
from kb.reranking import spec_of
from kb.words.query import Wording, WordQuery
from retrieval.headings import heading_line
from retrieval.hydration import Found
from retrieval.query import Query

log = logging.getLogger(__name__)

# What of a pasted page a reranker reads as the question.
QUERY_READ = 8_000


@dataclass(slots=True)
class Reranked:
    """The pool in its new order. `failures` say in words what stayed in the fused order, `steps` what was asked of whom."""

    pool: list[Found]
    below_min_score: int = 0
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)


def rerank_pool(query: Query, pool: Sequence[Found], words: WordQuery) -> Reranked:
    """Each knowledge base by the reranker that it names, or that the request does. Never raises: without its reranker a hit keeps its
    score. What follows the depth that a reranker reads is left out, so that all of its hits are ranked by the same score."""
    done = Reranked([hit for hit in pool if hit.target.rerank is None])
    if len(query.text) > QUERY_READ:
        done.notes.append(f"The query is longer than the {QUERY_READ:,} characters that a reranker is given.")
    for name in sorted({hit.target.rerank for hit in pool if hit.target.rerank is not None}):
        own = [hit for hit in pool if hit.target.rerank == name]
        depth = max(query.limit, *(hit.target.rerank_depth for hit in own))
        _rerank_by(query, name, own[:depth], own, words, done)
    places = {hit.row["id"]: place for place, hit in enumerate(pool)}
    done.pool.sort(key=lambda hit: (-hit.candidate.score, places[hit.row["id"]]))
    return done


def passage_of(row: Mapping[str, Any]) -> str:
    """What a reranker reads of a chunk: where it stands, and its whole text."""
    line = heading_line(row["document__title"] or "", row["heading_path"])
    return f"{line}\n\n{row['text']}" if line else row["text"]


def _rerank_by(query: Query, name: str, read: Sequence[Found], own: Sequence[Found], words: WordQuery, done: Reranked) -> None:
    started = perf_counter()
    step: dict[str, Any] = {"reranker": name, "passages": len(read)}
    done.steps.append(step)
    try:
        scores = _scores(query, query.rerankers.get(name), name, [passage_of(hit.row) for hit in read])
    except LecternError as error:
        step["error"] = error.message
        done.failures.append(error.message)
        done.pool += own
        return
    finally:
        step["ms"] = round((perf_counter() - started) * 1000, 2)
    for hit, score in zip(read, scores, strict=True):
        candidate = hit.candidate
        if score < hit.target.min_score.reranked and not _is_named(hit, words):
            done.below_min_score += 1
            continue
        done.pool.append(replace(hit, candidate=replace(candidate, score=score, scores=replace(candidate.scores, reranked=score))))


def _scores(query: Query, row: Reranker | None, name: str, passages: Sequence[str]) -> list[float]:
    if row is None:
        raise LecternError(f"There is no reranker {name} any more. Register it again, or let the knowledge base name another one.")
    try:
        spec = spec_of(row, organization_id=query.organization)
        return rerank(load_reranker(spec), spec, query.text[:QUERY_READ], passages)
    except LecternError:
        raise
    except Exception as error:
        # A runtime may raise anything, and the fused order is an answer.
        log.exception("The reranker %s failed.", name)
        raise LecternError(f"The reranker {name} failed; the log of the server says why.") from error


def _is_named(hit: Found, words: WordQuery) -> bool:
    """Who asks for a thing by its name means the passages that hold it, whatever a model thinks of them."""
    if hit.candidate.mode != "hybrid" or not words.names_something:
        return False
    return Wording("\n".join([*hit.row["heading_path"], hit.row["text"]])).names_all(words)
