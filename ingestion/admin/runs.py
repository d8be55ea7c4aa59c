"""Runs. People read them, stop them, and answer for what one would remove."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet, Value
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.dataclasses import UnfoldAction
from unfold.decorators import action, display

from ingestion.admin.confirmations import confirmed, find_object, page_of
from ingestion.counters import count_items
from ingestion.models import IngestionRun
from ingestion.services import removals, runs
from ingestion.services.crawls import crawl_of_run
from ingestion.services.progress import progress_of, speed_of
from kb import access
from kb.access import Level
from kb.admin.rows import RowAdmin, ShownOnly, actor_of
from kb.models import Source

PLANNED_SHOWN = 200
COLOURS = {
    "succeeded": "success",
    "partial": "warning",
    "needs_confirmation": "warning",
    "failed": "danger",
    "cancelled": "danger",
    "queued": "info",
    "running": "info",
}


@admin.register(IngestionRun)
class RunAdmin(ShownOnly, RowAdmin):
    within_knowledge_base: ClassVar[bool] = True
    list_display = ("created_at", "source", "kind", "coloured_status", "stop_reason", "numbers", "trigger", "asked_by", "duration")
    list_filter = ("status", "kind", "trigger")
    list_select_related = ("source__knowledge_base", "requested_by", "space__embedding_model")
    search_fields = ("source__name", "source__knowledge_base__name")
    ordering = ("-created_at",)
    actions_detail = ("cancel_run", "confirm_run", "remove_unasked", "reject_run")
    fields = (
        "source",
        "kind",
        "trigger",
        "status",
        "stop_reason",
        "waiting_for",
        "speed",
        "documents",
        "live_counters",
        "site",
        "error",
        "warnings_shown",
        "version",
        "asked_by",
        "created_at",
        "started_at",
        "listed_at",
        "finished_at",
        "duration",
        "planned",
        "answered",
    )
    readonly_fields = (
        "waiting_for",
        "speed",
        "documents",
        "live_counters",
        "site",
        "warnings_shown",
        "asked_by",
        "duration",
        "planned",
        "answered",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[IngestionRun]:
        """Runs of channels count documents that may be private: their numbers are for operators, and uploads are told of by their files."""
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows.annotate(is_counted=Value(True))
        channels = Q(source__kind=Source.Kind.CHANNEL)
        rows = rows.exclude(channels, kind=IngestionRun.Kind.PUSH)
        return rows.annotate(is_counted=ExpressionWrapper(~channels, output_field=BooleanField()))

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[UnfoldAction]:
        """The buttons that mean something now; what they call refuses by itself if that has changed since."""
        run = self.get_object(request, str(object_id))
        offered = set()
        if run is not None and run.is_open:
            offered.add("cancel_run")
        if run is not None and run.status == IngestionRun.Status.NEEDS_CONFIRMATION:
            offered.update(("confirm_run", "reject_run"))
            if run.source.kind == Source.Kind.WEB:
                offered.add("remove_unasked")
        names = {f"{self.opts.app_label}_{self.opts.model_name}_{name}" for name in offered}
        return [button for button in super().get_actions_detail(request, object_id) if button.action_name in names]

    @display(description="status", ordering="status", label=COLOURS)
    def coloured_status(self, run: IngestionRun) -> str:
        return run.status

    @admin.display(description="ingested · unchanged · failed · removed")
    def numbers(self, run: IngestionRun) -> str:
        if not run.is_counted:
            return "-"
        counters = count_items(run) if run.is_open else run.counters
        failed = sum(counters.get("failed", {}).values())
        return f"{counters.get('ingested', 0)} · {counters.get('unchanged', 0)} · {failed} · {counters.get('removed', 0)}"

    @admin.display(description="waits for")
    def waiting_for(self, run: IngestionRun) -> str:
        return progress_of(run).waiting_for or "-"

    @admin.display(description="gets on")
    def speed(self, run: IngestionRun) -> str:
        speed = speed_of(run, progress_of(run)) if run.is_counted else None
        if speed is None:
            return "-"
        left = f", {timedelta(seconds=speed.eta_seconds)} to go" if speed.eta_seconds is not None else ""
        depth = f"; {speed.queue:,} addresses wait, depth {speed.depth}" if speed.depth is not None else ""
        return f"{speed.per_second} a second{left}{depth}"

    @admin.display(description="site")
    def site(self, run: IngestionRun) -> SafeString | str:
        """robots.txt of its hosts, and its sitemaps."""
        crawl = crawl_of_run(run)
        if crawl is None:
            return "-"
        rows = [(f"{host.origin}/robots.txt", host.outcome, host.error) for host in crawl.hosts]
        rows += [(each["url"], f"{each['outcome']}, {each['pages']:,} pages", each["problem"]) for each in crawl.sitemaps]
        shown = format_html_join("", '<tr><td class="pr-6">{}</td><td class="pr-6">{}</td><td>{}</td></tr>', rows)
        return format_html("<table><tbody>{}</tbody></table>", shown) if rows else "-"

    @admin.display(description="documents")
    def documents(self, run: IngestionRun) -> str:
        url = f"{reverse('admin:ingestion_runitem_changelist')}?run__id__exact={run.id}"
        return format_html('<a href="{}">What became of each document</a>', url)

    @admin.display(description="counters")
    def live_counters(self, run: IngestionRun) -> SafeString | str:
        rows = counter_rows(progress_of(run).counters) if run.is_counted else []
        shown = format_html_join("", '<tr><td class="pr-6">{}</td><td class="text-right">{}</td></tr>', rows)
        return format_html("<table><tbody>{}</tbody></table>", shown) if rows else "-"

    @admin.display(description="warnings")
    def warnings_shown(self, run: IngestionRun) -> SafeString | str:
        shown = format_html_join("", "<li>{}</li>", ((warning,) for warning in run.warnings))
        return format_html('<ul class="list-disc pl-4">{}</ul>', shown) if run.warnings else "-"

    @admin.display(description="duration")
    def duration(self, run: IngestionRun) -> str:
        """Since it began; the time in the queue is not counted."""
        if run.started_at is None:
            return "-"
        seconds = ((run.finished_at or timezone.now()) - run.started_at).total_seconds()
        return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))

    @admin.display(description="asked for by", ordering="requested_name")
    def asked_by(self, run: IngestionRun) -> str:
        return run.started_by or "-"

    @admin.display(description="would remove")
    def planned(self, run: IngestionRun) -> SafeString | str:
        """The first of them by name; the API lists all."""
        number = removals.count_planned(run) if run.is_counted else 0
        if not number:
            return "-"
        rows = [(page_of(row), row.title or row.key, row.key) for row in removals.planned_documents(run).order_by("key")[:PLANNED_SHOWN]]
        shown = format_html_join("", '<li><a href="{}">{}</a> · {}</li>', rows)
        more = f"and {number - PLANNED_SHOWN:,} more" if number > PLANNED_SHOWN else ""
        return format_html('{} documents<ul class="list-disc pl-4">{}</ul>{}', f"{number:,}", shown, more)

    @admin.display(description="answered")
    def answered(self, run: IngestionRun) -> SafeString | str:
        """Who confirmed or rejected what it planned, and what came of that."""
        answer = run.answer
        if not answer:
            return "-"
        words = f"{answer['decision']} by {answer['by']}, {answer['at'][:16].replace('T', ' ')} UTC"
        if not answer.get("run_id"):
            return words
        link = reverse("admin:ingestion_ingestionrun_change", args=[answer["run_id"]])
        came = "under way" if answer.get("removed") is None else f"{answer['removed']} removed, {answer['kept']} kept"
        return format_html('{}: <a href="{}">{}</a>', words, link, came)

    @action(description="Cancel", url_path="cancel")
    def cancel_run(self, request: HttpRequest, object_id: str) -> HttpResponse:
        run = find_object(self, request, object_id)
        sentences = [f"This stops the run of {run.source}. What it has published stays, and vectors that were paid are kept."]

        def act() -> str:
            runs.cancel_run(_editable(request, run), by=request.user.get_username())
            return "The run was cancelled."

        return confirmed(self, request, run, title="Cancel this run?", sentences=sentences, button="Cancel the run", act=act)

    @action(description="Confirm removals", url_path="confirm")
    def confirm_run(self, request: HttpRequest, object_id: str) -> HttpResponse:
        again = (
            "Each address is asked for again first: what the site still gives stays, and so does what the source showed again since then."
        )
        return self._confirm(request, object_id, sentence=again, unasked=False)

    @action(description="Remove without asking", url_path="remove")
    def remove_unasked(self, request: HttpRequest, object_id: str) -> HttpResponse:
        at_once = "The site is not asked again: also what it still gives goes. What the source showed again since then stays."
        return self._confirm(request, object_id, sentence=at_once, unasked=True)

    def _confirm(self, request: HttpRequest, object_id: str, *, sentence: str, unasked: bool) -> HttpResponse:
        run = find_object(self, request, object_id)
        number = removals.count_planned(run)
        sentences = [f"This removes {number} documents of {run.source} with their chunks: the run did not find them any more.", sentence]

        def act() -> str:
            by = request.user.get_username()
            done = removals.confirm_removals(_editable(request, run), user=request.user, by=by, unasked=unasked)
            if not done.is_done:
                return f"{done.removed} documents were removed so far; workers go on with the rest, in the run {done.deletion.id}."
            return f"{done.removed} documents were removed, {done.kept} stay."

        button = f"Remove {number} documents"
        return confirmed(self, request, run, title="Remove these documents?", sentences=sentences, button=button, act=act)

    @action(description="Reject removals", url_path="reject")
    def reject_run(self, request: HttpRequest, object_id: str) -> HttpResponse:
        run = find_object(self, request, object_id)
        number = removals.count_planned(run)
        sentences = [f"This forgets the planned removal of {number} documents of {run.source}, and counts their absence anew."]

        def act() -> str:
            return f"{removals.reject_removals(_editable(request, run), by=request.user.get_username())} documents stay."

        return confirmed(self, request, run, title="Keep these documents?", sentences=sentences, button=f"Keep {number} documents", act=act)


def counter_rows(counters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Counters as (name, value) to be read; those by reason get a row each, and what is not known none."""
    rows = []
    for name, value in counters.items():
        title = name.replace("_", " ")
        if isinstance(value, Mapping):
            rows.extend((f"{title}: {reason.replace('_', ' ')}", f"{number:,}") for reason, number in value.items())
        elif name == "bytes":
            rows.append(("size", filesizeformat(value)))
        elif value is not None:
            rows.append((title, f"{value:,}" if isinstance(value, int) else str(value)))
    return rows


def _editable(request: HttpRequest, run: IngestionRun) -> IngestionRun:
    return access.get_row(actor_of(request, run.organization), IngestionRun, run.id, Level.EDIT)
