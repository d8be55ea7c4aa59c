"""Latency, throughput and recall of search by mode and selectivity, one JSON line each, then one a bar; 1 when a bar was missed.

    python tests/benchmarks/search.py --chunks 200000 --clients 1 8 [--keep HOME]

Everything lives in a throw-away home of the embedded services, or in HOME, where the next run finds the corpus. Query embedding is not
measured. `sql_p50_ms` and `sql_per_s` are the same statements sent again by bare cursors of as many clients, without our code around
them; `short` counts answers with fewer rows than exist.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.bars import Bars  # noqa: E402
from tests.benchmarks.timing import measure, record, replay  # noqa: E402

LIMIT = 10
# What must be reached: beside the same statements without our code, and beside exact answers.
BESIDE_SQL = ("vector", "hybrid")
MOST_TO_SQL = 2.0
LEAST_OF_SQL = 0.7
MOST_SPREAD = 4.0
LEAST_RECALL = 0.95


@dataclass(frozen=True)
class Question:
    """One search: what is asked, and where. `share` names documents by their metadata, the second kind of selectivity."""

    text: str
    vector: object
    knowledge_bases: tuple[UUID, ...]
    share: str | None = None


def prepare_services(home: Path) -> None:
    """Before any import of Django: its settings read these."""
    from config.embedded import secret_key, start_services

    services = start_services(home=home, valkey=False, test_mode=True)
    os.environ.update(
        LECTERN_HOME=str(home),
        DATABASE_URL=services.database_url,
        DATABASE_OWNER_URL=services.owner_url,
        REDIS_URL="redis://127.0.0.1:1/0",
        LECTERN_SECRET_KEY=secret_key(home) or "a key for a throw-away database only",
        DJANGO_SETTINGS_MODULE="config.settings",
    )
    import django
    from django.core.management import call_command

    django.setup()

    from config.tenancy import serve_everyone

    serve_everyone()
    call_command("migrate", database="owner", verbosity=0)


def searchers(corpus) -> dict[str, Callable[[Question], list[int]]]:
    """Mode -> search as the API does it, best chunk ids first. The question's vector is given, its neighbours are not joined."""
    from config.tenancy import tenant
    from kb.access import system_actor
    from retrieval.encoding import QueryVectors
    from retrieval.requests import SearchRequest
    from retrieval.search import search

    actor = system_actor(corpus.organization)

    def searcher(mode: str) -> Callable[[Question], list[int]]:
        def ask(question: Question) -> list[int]:
            filters = {"type": "contains", "key": "shares", "value": question.share} if question.share else None
            request = SearchRequest(
                query=question.text, knowledge_bases=[str(each) for each in question.knowledge_bases], mode=mode,
                max_results=LIMIT, min_score=0.0, neighbours=0, filters=filters,
            )  # fmt: skip
            vectors = QueryVectors(question.text, corpus.organization.pk, _known={corpus.space.pk: question.vector})
            with tenant(corpus.organization.pk):
                return [hit.chunk_id for hit in search(actor, request, vectors=vectors).hits]

        return ask

    return {mode: searcher(mode) for mode in ("vector", "keyword", "hybrid")}


@contextmanager
def exact_stores() -> Iterator[None]:
    """No index, no narrowing: what a search answers with all the time in the world."""
    from kb.stores import vectors, words

    places = [(vectors, "EXACT_ROWS"), (vectors, "EXACT_ROWS_OF_DOCUMENTS"), (words, "EXACT_CHUNKS")]
    kept = [getattr(module, name) for module, name in places]
    for module, name in places:
        setattr(module, name, sys.maxsize)
    try:
        yield
    finally:
        for (module, name), value in zip(places, kept, strict=True):
            setattr(module, name, value)


class Truth:
    """Exact answers: vectors by numpy, which shares nothing with the code measured; the other modes by the same code without shortcuts."""

    def __init__(self, corpus) -> None:
        import numpy as np

        self._corpus = corpus
        self._searchers = searchers(corpus)
        self._ids = np.array(corpus.chunk_ids)
        self._vectors = np.concatenate(corpus.vectors).astype(np.float16).astype(np.float32)
        self._vectors /= np.linalg.norm(self._vectors, axis=1, keepdims=True)
        self._owners = np.array([owner.int for owner in corpus.owners], dtype=object)
        self._documents = np.array([document.int for document in corpus.chunk_documents], dtype=object)

    def of(self, mode: str, question: Question) -> list[int]:
        if mode == "vector":
            return self._by_vector(question)
        with exact_stores():
            return self._searchers[mode](question)

    def _by_vector(self, question: Question) -> list[int]:
        import numpy as np

        inside = np.isin(self._owners, [each.int for each in question.knowledge_bases])
        if question.share:
            inside &= np.isin(self._documents, [each.int for each in self._corpus.chosen[question.share]])
        ids, similarities = self._ids[inside], self._vectors[inside] @ question.vector
        best = np.argsort(-similarities)[:LIMIT]
        return ids[best[similarities[best] >= 0]].tolist()


def lines(corpus, questions: Sequence[Question], clients: Sequence[int], modes: Sequence[str]) -> Iterator[dict]:
    import numpy as np
    from search_corpus import SHARES

    from config.tenancy import tenant

    def again(statements: Sequence[tuple[object, object]]) -> list[int]:
        with tenant(corpus.organization.pk):
            return replay(statements)

    everything = tuple(knowledge_base.pk for knowledge_base in corpus.knowledge_bases.values())
    places = {("all", "100%"): (everything, None)}
    for name in sorted(SHARES, key=SHARES.get, reverse=True):
        places["knowledge base", name] = ((corpus.knowledge_bases[name].pk,), None)
        places["documents", name] = (everything, name)
    truth = Truth(corpus)
    for mode, search in searchers(corpus).items():
        if mode not in modes:
            continue
        for (kind, selectivity), (knowledge_bases, share) in places.items():
            asked = [replace(question, knowledge_bases=knowledge_bases, share=share) for question in questions]
            expected = [truth.of(mode, question) for question in asked]
            measure(search, asked[:5], 1)
            statements = [record(search, question) for question in asked]
            for count in clients:
                rounds = asked * (1 if count == 1 else 4)
                timed = measure(search, rounds, count)
                alone = measure(again, statements * (1 if count == 1 else 4), count)
                pairs = [(a, b) for a, b in zip(timed.answers, expected * (len(rounds) // len(asked)), strict=True) if a is not None]
                hits = [len(set(a) & set(b)) / len(b) for a, b in pairs if b]
                yield {
                    "bench": "search", "mode": mode, "chunks": len(corpus.chunk_ids), "selectivity": selectivity, "filter": kind,
                    "clients": count, "queries": len(rounds), "errors": timed.errors,
                    "p50_ms": _ms(np.percentile(timed.seconds, 50)), "p95_ms": _ms(np.percentile(timed.seconds, 95)),
                    "per_s": round(timed.per_second, 1),
                    "recall10": round(float(np.mean(hits)), 4) if hits else None,
                    "short": sum(len(a) < len(b) for a, b in pairs),
                    "sql_p50_ms": _ms(np.percentile(alone.seconds, 50)), "sql_per_s": round(alone.per_second, 1),
                }  # fmt: skip


def judge(bars: Bars, line: dict) -> None:
    name = f"{line['mode']}, {line['selectivity']} ({line['filter']}), {line['clients']} clients"
    bars.at_most(f"{name}: errors", line["errors"], 0)
    bars.at_most(f"{name}: short answers", line["short"], 0)
    bars.at_least(f"{name}: recall@10", line["recall10"], LEAST_RECALL)
    if line["filter"] == "all" and line["mode"] in BESIDE_SQL and line["clients"] == 1:
        bars.at_most(f"{name}: p50 to that of its SQL", line["p50_ms"] / line["sql_p50_ms"], MOST_TO_SQL)
    if line["filter"] == "all" and line["clients"] >= 8:
        bars.at_least(f"{name}: throughput to that of its SQL", line["per_s"] / line["sql_per_s"], LEAST_OF_SQL)
        bars.at_most(f"{name}: p95 to p50", line["p95_ms"] / line["p50_ms"], MOST_SPREAD)


def _ms(seconds: float) -> float:
    return round(float(seconds) * 1000, 2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--chunks", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--modes", nargs="+", default=["vector", "keyword", "hybrid"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="HOME", help="keep the corpus there and use it again")
    arguments = parser.parse_args()
    bars = Bars()
    with tempfile.TemporaryDirectory(prefix="lectern-bench-") as folder:
        os.chmod(folder, 0o711)  # the server may run as another user
        home = arguments.keep or Path(folder) / "home"
        home.mkdir(parents=True, exist_ok=True)
        from config.embedded import stop_services

        try:
            prepare_services(home)
            from search_corpus import Generator, iter_questions, open_corpus, remove_documents

            generator = Generator(arguments.seed)
            corpus = open_corpus(generator, chunks=arguments.chunks, kept=home / "corpus.pickle" if arguments.keep else None)
            load = {
                f"{part}_ms_per_chunk": round(1000 * corpus.seconds[part] / arguments.chunks, 3) for part in ("chunks", "vectors", "words")
            }
            load |= {"settle_s": round(corpus.seconds["settle"], 1), "index_s": round(corpus.seconds["index"], 1)}
            print(json.dumps({"bench": "search_load", "chunks": arguments.chunks, **load}), flush=True)
            generator.draw_from(arguments.seed + 1)
            questions = [Question(text, vector, ()) for text, vector in iter_questions(generator, arguments.queries)]
            for line in lines(corpus, questions, arguments.clients, arguments.modes):
                print(json.dumps(line), flush=True)
                judge(bars, line)
            if not arguments.keep:
                removal = remove_documents(corpus, 40)
                print(json.dumps({"bench": "search_remove", "chunks": arguments.chunks, "ms_per_chunk": round(removal, 3)}), flush=True)
        finally:
            stop_services(home)
    return bars.status


if __name__ == "__main__":
    sys.exit(main())
