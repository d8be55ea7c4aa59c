"""Django's check, and what holds the processes that read files on this machine."""

from typing import Any

from django.conf import settings
from django.core.management.commands import check

from config.errors import Unavailable
from ingestion.extract.enclosure import offered, require_closed


class Command(check.Command):
    def handle(self, *app_labels: str, **options: Any) -> None:
        super().handle(*app_labels, **options)
        if not options["list_tags"]:
            self.stdout.write(_said(offered()))


def _said(state: str) -> str:
    try:
        require_closed(state)
    except Unavailable as refused:
        if settings.ENV.sandbox == "kernel":
            return refused.message
        return (
            f"Files are read in child processes with limits of time, memory and output only ({state}), as LECTERN_SANDBOX=limits wants it."
        )
    return f"Files are read in child processes with limits of time, memory and output, closed in by the kernel ({state})."
