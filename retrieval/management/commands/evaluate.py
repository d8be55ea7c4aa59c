import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.errors import LecternError
from kb.access import system_actor
from retrieval import jobs
from retrieval.evaluation.requests import WAYS, EvaluationInput
from retrieval.evaluation.running import KIND, start_evaluation
from retrieval.management.knowledge_bases import named_knowledge_base


class Command(BaseCommand):
    help = "Ask the judged questions of a knowledge base in each way, here and now: nDCG, recall and MRR, kept beside earlier ones."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("knowledge_base", metavar="KB", help="its id, or its name where no other has it")
        parser.add_argument("--way", action="append", choices=WAYS, dest="ways", help="only these; `own` is the knowledge base's settings")
        parser.add_argument("-k", type=int, default=10, help="places of the list that count (default: 10)")
        parser.add_argument("--comment", default="", help="what is tried; shown beside the figures")
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, knowledge_base: str, ways: list[str] | None, k: int, comment: str, **options: Any) -> None:
        if not 1 <= k <= 50:
            raise CommandError("-k must be from 1 to 50.")
        try:
            found = named_knowledge_base(knowledge_base)
            wanted = EvaluationInput(ways=ways or list(WAYS), k=k, comment=comment[:300])
            evaluation = start_evaluation(system_actor(found.organization), found, wanted, send=False)
            jobs.finish_here(KIND, evaluation)
        except LecternError as error:
            raise CommandError(error.message) from error
        if options["json"]:
            told = {"id": str(evaluation.id), "status": evaluation.status, "version": evaluation.version, "figures": evaluation.figures}
            self.stdout.write(json.dumps(told))
        else:
            self._say(evaluation, k)
        if evaluation.status != evaluation.Status.SUCCEEDED:
            raise CommandError(f"The evaluation {evaluation.status}: {evaluation.error}")

    def _say(self, evaluation: Any, k: int) -> None:
        self.stdout.write(f"{evaluation.knowledge_base}, version {evaluation.version}, {evaluation.total} questions")
        self.stdout.write(
            f"{'':8} {f'nDCG@{k}':>9} {f'recall@{k}':>10} {'MRR':>7} {'scored':>7} {'empty':>6} {'stale':>6} {'failed':>7} {'ms':>7}"
        )
        for way in evaluation.settings["ways"]:
            one = evaluation.figures.get(way)
            if one is None:
                continue
            means = " ".join(f"{'-' if one[name] is None else f'{one[name]:.4f}':>{width}}" for name, width in _MEANS)
            time = "-" if one["milliseconds"] is None else f"{one['milliseconds']:.1f}"
            self.stdout.write(f"{way:8} {means} {one['scored']:>7} {one['empty']:>6} {one['stale']:>6} {one['failed']:>7} {time:>7}")


_MEANS = (("ndcg", 9), ("recall", 10), ("mrr", 7))
