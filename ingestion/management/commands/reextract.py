from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.errors import LecternError, NotFound
from ingestion.services.runs import reextract_source
from kb.access import parse_id
from kb.models import KnowledgeBase, Source


class Command(BaseCommand):
    help = "Read sources again, for instance after an update that reads some format better. Runs start now; workers do them."

    def add_arguments(self, parser: CommandParser) -> None:
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument("--source", help="id of one source")
        where.add_argument("--knowledge-base", help="id of a knowledge base: all its sources that run")
        where.add_argument("--everything", action="store_true", help="all sources of the installation")
        parser.add_argument("--outdated", action="store_true", help="only documents that an older extractor read")

    def handle(self, *args: Any, outdated: bool, **options: Any) -> None:
        failed = 0
        for source in _chosen(options):
            try:
                again = reextract_source(source, outdated_only=outdated, by="manage.py reextract")
                self.stdout.write(f"{source}: run {again.run.id} reads {again.documents} documents again.")
            except LecternError as error:
                failed += 1
                self.stderr.write(f"{source}: {error.message}")
        if failed:
            raise CommandError(f"{failed} sources were not started.")


def _chosen(options: dict[str, Any]) -> list[Source]:
    running = Source.objects.filter(
        state=Source.State.ACTIVE,
        enabled=True,
        kind__in=list(settings.CRAWLS),
        knowledge_base__state=KnowledgeBase.State.ACTIVE,
    ).order_by("created_at")
    try:
        if options["source"]:
            running = running.filter(id=parse_id(options["source"]))
        elif options["knowledge_base"]:
            running = running.filter(knowledge_base_id=parse_id(options["knowledge_base"]))
    except NotFound:
        running = running.none()
    found = list(running)
    if not found:
        raise CommandError("There is no such source that runs. Check the id, and that the source is enabled.")
    return found
