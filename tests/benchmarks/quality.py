"""nDCG@10 and recall of search beside a reference BM25 (bm25s): one JSON line a mode, then one a bar; 1 when a bar was missed.

    python tests/benchmarks/quality.py ../shared/data/ir/* [--identifiers 5000] [--modes vector,keyword,hybrid] [--keep HOME]

DIR holds corpus.jsonl, queries.jsonl and qrels.tsv. Each set goes through the pipeline (its own services and workers, the packaged model)
as one Markdown file a document; each question goes through the search that the API calls. `--identifiers` adds a generated set whose
questions name a code. `--keep` leaves the installation in HOME, and the next run with it finds the sets ingested.
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.bars import Bars  # noqa: E402
from tests.benchmarks.identifier_corpus import codes, documents, questions  # noqa: E402
from tests.installation import installation, use_settings  # noqa: E402

DEPTH = 10
CHUNKS = 100
MODES = ("vector", "keyword", "hybrid")
# What keyword search must reach of the reference, and where a line of its own is known, that; what both sides together must add.
OF_REFERENCE = 0.98
LINES = {"xquad_de": 0.94, "xquad_zh": 0.963}
BOTH_ARE_STRONG = {"cranfield": 1.02, "cisi": 1.02}
ELSEWHERE = 0.97
IDENTIFIERS = "identifiers"
QUESTIONS_OF_IDENTIFIERS = 500
SNOWBALL = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian"}


@dataclass(frozen=True)
class Set:
    """`relevant` is query id -> document id -> gain; only queries that have something relevant are asked."""

    name: str
    language: str
    documents: Mapping[str, tuple[str, str]]
    queries: Mapping[str, str]
    relevant: Mapping[str, Mapping[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="*")
    parser.add_argument("--identifiers", type=int, default=0, metavar="N", help="also a set of N generated documents with unique codes")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--language", help="of stemmer and stop words of the reference; default: the suffix of the set's name, else en")
    parser.add_argument("--keep", type=Path, metavar="HOME", help="keep the installation there and use it again")
    parser.add_argument("--model", default=None, help="a registered model other than the packaged one")
    arguments = parser.parse_args()
    modes = arguments.modes.split(",")
    if unknown := set(modes) - set(MODES):
        sys.exit(f"Unknown modes: {', '.join(sorted(unknown))}. Known: {', '.join(MODES)}.")
    sets = [read_set(directory, arguments.language) for directory in arguments.directory]
    if arguments.identifiers:
        sets.append(identifier_set(arguments.identifiers))
    if not sets:
        sys.exit("Name the folder of a set, or --identifiers N.")
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    bars = Bars()
    with ExitStack() as stack:
        installed = stack.enter_context(installation(roles=("main", "extract", "embed"), home=arguments.keep))
        use_settings(installed.environment)
        ingested = [ingest(given, arguments.model) for given in sets]
        installed.fleet.stop()
        for given, (knowledge_base, names) in zip(sets, ingested, strict=True):
            found = {}
            for mode in modes:
                found[mode] = measure(given, mode, knowledge_base, names)
                print(json.dumps(found[mode]), flush=True)
            judge(bars, given, found)
    sys.exit(bars.status)


def judge(bars: Bars, given: Set, found: Mapping[str, Mapping[str, float]]) -> None:
    """What was measured against what must be reached."""
    name = given.name
    for mode, line in found.items():
        bars.at_most(f"{name}: errors of {mode}", line["errors"], 0)
        if name == IDENTIFIERS and mode != "vector":
            bars.at_least(f"{name}: Recall@5 of {mode}", line["recall5"], 1.0)
    if name == IDENTIFIERS:
        return
    if "keyword" in found:
        reference, reached = mean_ndcg(given, rank_by_reference(given)), found["keyword"]["ndcg10"]
        bars.at_least(f"{name}: keyword to the reference BM25 ({reference:.4f})", reached / reference, OF_REFERENCE)
        if name in LINES:
            bars.at_least(f"{name}: keyword", reached, LINES[name])
    if set(MODES) <= set(found):
        best = max(found["vector"]["ndcg10"], found["keyword"]["ndcg10"])
        bars.at_least(f"{name}: hybrid to the best single mode", found["hybrid"]["ndcg10"] / best, BOTH_ARE_STRONG.get(name, ELSEWHERE))


def identifier_set(count: int) -> Set:
    names = codes(count)
    asked = questions(names, QUESTIONS_OF_IDENTIFIERS)
    return Set(IDENTIFIERS, "en", documents(names), asked, {name: {name: 1.0} for name in asked})


def read_set(directory: Path, language: str | None) -> Set:
    missing = [name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv") if not (directory / name).is_file()]
    if missing:
        sys.exit(f"{directory} has no {', '.join(missing)}.")
    documents = {row["_id"]: (row.get("title") or "", row["text"]) for row in _rows(directory / "corpus.jsonl")}
    relevant: dict[str, dict[str, float]] = {}
    for line in (directory / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, gain = line.split("\t")
        if float(gain) > 0 and document in documents:
            relevant.setdefault(query, {})[document] = float(gain)
    queries = {row["_id"]: row["text"] for row in _rows(directory / "queries.jsonl") if row["_id"] in relevant}
    suffix = directory.name.rpartition("_")[2]
    return Set(directory.name, language or (suffix if suffix in (*SNOWBALL, "zh") else "en"), documents, queries, relevant)


def _rows(path: Path) -> Iterable[dict]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def ndcg(ranked: Sequence[str], gains: Mapping[str, float]) -> float:
    def discounted(values: Iterable[float]) -> float:
        return sum(value / math.log2(place + 1) for place, value in enumerate(values, start=1))

    best = discounted(sorted(gains.values(), reverse=True)[:DEPTH])
    return discounted(gains.get(document, 0.0) for document in ranked[:DEPTH]) / best


def recall(ranked: Sequence[str], gains: Mapping[str, float], depth: int = DEPTH) -> float:
    return sum(document in gains for document in ranked[:depth]) / len(gains)


def mean_ndcg(given: Set, ranked: Mapping[str, Sequence[str]]) -> float:
    return statistics.fmean(ndcg(ranked.get(query, ()), given.relevant[query]) for query in given.queries)


def rank_by_reference(given: Set) -> dict[str, list[str]]:
    """BM25 by bm25s: Lucene's idf, k1 1.2, b .75; stemmed words without stop words, pairs of characters for Chinese."""
    import bm25s

    ids = list(given.documents)
    retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    retriever.index(_tokens([f"{title} {text}" for title, text in given.documents.values()], given.language), show_progress=False)
    queries = list(given.queries)
    found, _ = retriever.retrieve(
        _tokens([given.queries[query] for query in queries], given.language), k=min(DEPTH, len(ids)), show_progress=False
    )
    return {query: [ids[int(place)] for place in row] for query, row in zip(queries, found, strict=True)}


def _tokens(texts: Sequence[str], language: str) -> list[list[str]]:
    import bm25s
    import Stemmer

    if language == "zh":
        characters = [[c for c in text.lower() if c.isalnum()] for text in texts]
        return [[a + b for a, b in pairwise(row)] or row for row in characters]
    stemmer = Stemmer.Stemmer(SNOWBALL[language])
    return bm25s.tokenize(list(texts), stopwords=language, stemmer=stemmer, return_ids=False, show_progress=False)


def ingest(given: Set, model: str | None) -> tuple[str, dict[str, str]]:
    """(knowledge base id, document id -> id in the set), through upload, workers and publication."""
    from django.core.files.uploadedfile import SimpleUploadedFile

    from ingestion.services.files import store_files
    from ingestion.services.runs import start_run
    from kb import access, services
    from kb.models import Document, KnowledgeBase, Organization, Source
    from tests.fleet import wait_for

    actor = access.system_actor(Organization.objects.get())
    name = f"{given.name} {model or ''}".strip()
    knowledge_base = KnowledgeBase.objects.filter(name=name).first()
    if knowledge_base is None:
        upload = {"max_files": 10_000, "max_total_bytes": 10**9}
        document = {"name": name, "embedding_model": model, "sources": [{"name": "files", "type": "upload", "upload": upload}]}
        knowledge_base = services.create_knowledge_base(actor, document=document)
        if knowledge_base.space.embedding_model.provider == "hashing":
            sys.exit("The `hashing` model measures nothing; use a real one.")
        # Cranfield holds documents without a word; an upload of one is refused, and rightly.
        texts = {number: _markdown(*parts) for number, parts in enumerate(given.documents.values()) if "".join(parts).strip()}
        files = [SimpleUploadedFile(f"{number}.md", text) for number, text in texts.items()]
        stored = store_files(Source.objects.get(knowledge_base=knowledge_base), files)
        if stored.rejected:
            sys.exit(f"Rejected: {stored.rejected[:5]}")
        run = start_run(Source.objects.get(knowledge_base=knowledge_base))

        def closed() -> bool:
            run.refresh_from_db()
            return run.finished_at is not None

        wait_for(closed, seconds=1800, what="the run", every=0.5)
        if run.status != "succeeded":
            sys.exit(f"The run ended {run.status}: {run.error} {run.counters}")
    ids = list(given.documents)
    rows = Document.objects.filter(knowledge_base=knowledge_base).values_list("id", "key")
    return str(knowledge_base.id), {str(identifier): ids[int(key.removesuffix(".md"))] for identifier, key in rows}


def _markdown(title: str, text: str) -> bytes:
    return (f"# {title.strip()}\n\n{text}\n" if title.strip() else f"{text}\n").encode()


def measure(given: Set, mode: str, knowledge_base: str, names: Mapping[str, str]) -> dict[str, object]:
    from kb import access
    from kb.models import Organization
    from retrieval.requests import SearchRequest
    from retrieval.search import search

    actor = access.system_actor(Organization.objects.get())
    ranked: dict[str, list[str]] = {}
    spent: list[float] = []
    errors = 0
    for query, text in given.queries.items():
        request = SearchRequest(query=text, knowledge_bases=[knowledge_base], mode=mode, max_results=CHUNKS, min_score=0.0, neighbours=0)
        started = time.perf_counter()
        try:
            answer = search(actor, request)
        except Exception as error:  # counted: a benchmark says how many, not only that
            errors += 1
            print(f"{query}: {error}", file=sys.stderr)
            continue
        spent.append((time.perf_counter() - started) * 1000)
        errors += answer.degraded is not None
        ranked[query] = list(dict.fromkeys(names[str(hit.document.id)] for hit in answer.hits))[:DEPTH]
    return {
        "bench": "quality",
        "set": given.name,
        "mode": mode,
        "queries": len(given.queries),
        "ndcg10": round(mean_ndcg(given, ranked), 4),
        "recall5": _mean_recall(given, ranked, 5),
        "recall10": _mean_recall(given, ranked, 10),
        "errors": errors,
        "p50_ms": round(statistics.median(spent), 1) if spent else None,
    }


def _mean_recall(given: Set, ranked: Mapping[str, Sequence[str]], depth: int) -> float:
    return round(statistics.fmean(recall(ranked.get(query, ()), given.relevant[query], depth) for query in given.queries), 4)


if __name__ == "__main__":
    main()
