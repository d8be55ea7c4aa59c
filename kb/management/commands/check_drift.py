import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.errors import LecternError
from kb.drift import Finding, find_drift
from kb.models import Organization


class Command(BaseCommand):
    help = "Compare files, documents, chunks, vectors, words and stored bytes with each other. Changes nothing without --repair."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--organization", help="name of one organization; files that no row names are looked for only without it")
        parser.add_argument("--contents", action="store_true", help="read every stored file and check its hash")
        parser.add_argument("--repair", action="store_true", help="mend what can be mended, and say each time what it does")
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def handle(self, *args: Any, organization: str | None, contents: bool, repair: bool, **options: Any) -> None:
        chosen = Organization.objects.filter(name=organization).first() if organization else None
        if organization and chosen is None:
            raise CommandError(f"There is no organization named {organization!r}.")
        left = 0
        try:
            for finding in find_drift(organization=chosen, contents=contents):
                self._say(finding, as_json=options["json"], repair=repair)
                mended = finding.repair() if repair and finding.is_repairable else None
                left += finding.count if mended is None else 0
                if mended is not None:
                    self._say_mended(finding, mended, as_json=options["json"])
        except LecternError as error:
            raise CommandError(error.message) from error
        if left:
            disagree = "1 thing does not agree." if left == 1 else f"{left} things do not agree."
            raise CommandError(disagree + ("" if repair else " --repair mends what can be mended."))
        if not options["json"]:
            self.stdout.write("Everything else agrees." if repair else "Everything agrees.")

    def _say(self, finding: Finding, *, as_json: bool, repair: bool) -> None:
        if as_json:
            told = {"kind": finding.kind, "count": finding.count, "knowledge_base": finding.knowledge_base or None}
            self.stdout.write(
                json.dumps({**told, "examples": finding.examples, "remedy": finding.remedy, "repairable": finding.is_repairable})
            )
            return
        where = f" in {finding.knowledge_base}" if finding.knowledge_base else ""
        some = f" ({', '.join(finding.examples)}{', …' if finding.count > len(finding.examples) else ''})" if finding.examples else ""
        remedy = finding.remedy if not finding.is_repairable else f"--repair {finding.remedy}" if not repair else f"now it {finding.remedy}"
        self.stdout.write(f"{finding.kind}{where}: {finding.count}{some}; {remedy}.".replace("..", "."))

    def _say_mended(self, finding: Finding, mended: int, *, as_json: bool) -> None:
        self.stdout.write(json.dumps({"kind": finding.kind, "repaired": mended}) if as_json else f"  {mended} changed.")
