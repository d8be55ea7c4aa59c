import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.errors import LecternError
from kb.access import system_actor
from retrieval import jobs
from retrieval.management.knowledge_bases import named_knowledge_base
from retrieval.models import RecallCheck
from retrieval.recall.running import KIND, MOST_QUERIES, start_check, warnings_of


class Command(BaseCommand):
    help = (
        "Compare what a vector search finds with an exact one, at 100, 10, 1 and 0.1 % of the documents of a knowledge base, "
        "here and now. Kept beside earlier checks; exit status 1 when recall is too low or rows are missing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("knowledge_base", metavar="KB", help="its id, or its name where no other has it")
        parser.add_argument("--queries", type=int, default=50, help=f"questions at each share, at most {MOST_QUERIES} (default: 50)")
        parser.add_argument("--seed", type=int, help="draw the same stored vectors and documents again")
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, knowledge_base: str, queries: int, seed: int | None, **options: Any) -> None:
        try:
            found = named_knowledge_base(knowledge_base)
            check = start_check(system_actor(found.organization), found, queries=queries, seed=seed, send=False)
            jobs.finish_here(KIND, check)
        except LecternError as error:
            raise CommandError(error.message) from error
        if check.status != check.Status.SUCCEEDED:
            raise CommandError(check.error or f"The check was {check.status}.")
        warnings = warnings_of(check)
        if options["json"]:
            told = {name: getattr(check, name) for name in ("version", "settings", "levels", "recall", "suggested_ef", "notes")}
            self.stdout.write(json.dumps({"id": str(check.id), **told, "warnings": warnings}))
        else:
            self._say(check)
        if warnings:
            raise CommandError(" ".join(warnings))

    def _say(self, check: RecallCheck) -> None:
        self.stdout.write(f"{check.knowledge_base}, version {check.version}, {check.settings['embedding_model']}")
        self.stdout.write(
            f"{'of documents':>14} {'queries':>7} {'recall@10':>9} {'worst':>6} {'short':>5} {'ms p50':>7} {'exact':>7}  plan"
        )
        for level in check.levels:
            share = f"{100 * level['selectivity']:g} % ({level['documents']:,})"
            times = f"{level['milliseconds']['p50']:>7.1f} {level['exact_milliseconds']['p50']:>7.1f}"
            plans = ", ".join(f"{plan} × {count}" for plan, count in level["plans"].items())
            figures = f"{level['queries']:>7} {level['recall']:>9.4f} {level['worst']:>6.2f} {level['short']:>5}"
            self.stdout.write(f"{share:>14} {figures} {times}  {plans}")
        for note in check.notes:
            self.stdout.write(note)
