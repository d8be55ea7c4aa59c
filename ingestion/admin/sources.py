"""Sources: look, run, purge, and the files of upload sources. What they are is edited in their knowledge base."""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.dataclasses import UnfoldAction
from unfold.decorators import action

from config.errors import LecternError
from config.paging import NEWEST_FIRST, take_page
from ingestion.admin.confirmations import carry_out, confirmed, find_object, page_of
from ingestion.admin.looks import Looks, editable
from ingestion.models import IngestionRun
from ingestion.services import files, pushes, runs
from ingestion.services.documents import find_documents
from ingestion.services.sources import states_of
from kb import access
from kb.access import Level
from kb.admin.rows import RowAdmin, ShownOnly, actor_of, actors
from kb.admin.text import counted
from kb.models import Document, Source

FILES_PAGE = 100


if admin.site.is_registered(Source):
    admin.site.unregister(Source)  # `kb` shows the row alone; what can be done to a source is known here


@admin.register(Source)
class SourceAdmin(Looks, ShownOnly, RowAdmin):
    within_knowledge_base: ClassVar[bool] = True
    list_display = ("name", "knowledge_base", "kind", "enabled", "documents", "last_run")
    list_filter = ("kind", "enabled")
    list_select_related = ("knowledge_base",)
    search_fields = ("name", "knowledge_base__name")
    ordering = ("knowledge_base__name", "name")
    fields = ("name", "knowledge_base", "kind", "enabled", "state", "documents", "last_run", "next_run", "last_fire", "created_at")
    readonly_fields = ("documents", "last_run", "next_run", "last_fire")
    actions_detail = ("run_now", "preview", "why", "reextract", "purge", "show_files")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:
        rows = super().get_queryset(request).filter(state=Source.State.ACTIVE)
        return rows.annotate(alive=Count("documents", filter=Q(documents__tombstoned_at=None) & _seen(request)))

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[UnfoldAction]:
        """An upload source has files to be changed here, a site pages that may be missing; a look needs a list of what there is."""
        source = self.get_object(request, str(object_id))
        kind = source.kind if source else ""
        offered = {"why": kind == Source.Kind.WEB, "show_files": kind == Source.Kind.UPLOAD, "preview": kind in settings.PREVIEWS}
        absent = {name for name, is_offered in offered.items() if not is_offered}
        names = {f"{self.opts.app_label}_{self.opts.model_name}_{name}" for name in absent}
        return [button for button in super().get_actions_detail(request, object_id) if button.action_name not in names]

    @admin.display(description="documents", ordering="alive")
    def documents(self, source: Source) -> int:
        return source.alive

    @admin.display(description="last run")
    def last_run(self, source: Source) -> SafeString | str:
        run = IngestionRun.objects.filter(source=source, kind=IngestionRun.Kind.INGEST).order_by("-created_at").first()
        if run is None:
            return "-"
        return format_html('<a href="{}">{} {}</a> {}', page_of(run), f"{run.created_at:%Y-%m-%d %H:%M}", run.status, run.error[:200])

    @admin.display(description="next run")
    def next_run(self, source: Source) -> str:
        (state,) = states_of([source])
        return f"{state.schedule.due_at:%Y-%m-%d %H:%M} UTC, by {state.schedule.cron}" if state.schedule else "-"

    @admin.display(description="last time")
    def last_fire(self, source: Source) -> SafeString | str:
        (state,) = states_of([source])
        if state.last_fire is None:
            return "-"
        log = f"{reverse('admin:ingestion_schedulefire_changelist')}?source__id__exact={source.pk}"
        outcome = state.last_fire.get_outcome_display().lower()
        return format_html(
            '{}: {} {} · <a href="{}">log</a>', f"{state.last_fire.due_at:%Y-%m-%d %H:%M}", outcome, state.last_fire.error, log
        )

    @action(description="Run now", url_path="run")
    def run_now(self, request: HttpRequest, object_id: str) -> HttpResponse:
        source = find_object(self, request, object_id)
        sentences = [f"This starts a run of {source}. It takes in what is new or changed, and costs embeddings for that alone."]

        def act() -> str:
            run = runs.start_run(editable(request, source), user=request.user)
            return f"The run {run.id} is queued."

        return confirmed(self, request, source, title="Run this source now?", sentences=sentences, button="Run now", act=act)

    @action(description="Read again", url_path="reextract")
    def reextract(self, request: HttpRequest, object_id: str) -> HttpResponse:
        source = find_object(self, request, object_id)
        sentences = [
            f"This starts a run of {source} that reads all {source.alive} documents again, also those that did not change.",
            "What stands answers until then. Passages that stay the same keep their vectors; others cost embeddings.",
        ]

        def act() -> str:
            again = runs.reextract_source(editable(request, source), **_of(request, source))
            return f"The run {again.run.id} is queued; it reads {again.documents} documents again."

        return confirmed(self, request, source, title="Read this source again?", sentences=sentences, button="Read again", act=act)

    @action(description="Purge", url_path="purge")
    def purge(self, request: HttpRequest, object_id: str) -> HttpResponse:
        source = find_object(self, request, object_id)
        sentences = [
            f"This forgets what was ingested of the {source.alive} documents of {source}: the next run reads and cuts all of them again.",
            "Until then their chunks go on answering. Vectors that were paid are used again, so this costs time and no embeddings.",
            "Files and configuration stay.",
        ]

        def act() -> str:
            number = runs.purge_source(editable(request, source), **_of(request, source))
            return f"{counted(number, 'document')} will be taken in anew by the next run."

        return confirmed(self, request, source, title="Purge this source?", sentences=sentences, button="Purge", act=act)

    @action(description="Files", url_path="files")
    def show_files(self, request: HttpRequest, object_id: str) -> HttpResponse:
        source = find_object(self, request, object_id)
        if source.kind != Source.Kind.UPLOAD:
            messages.error(request, f"{source} is no upload source; it has no files.")
            return HttpResponseRedirect(page_of(source))
        if request.method == "POST":
            carry_out(request, lambda: self._change_files(request, source))
            return HttpResponseRedirect(request.path)
        return TemplateResponse(request, "ingestion/admin/files.html", self._files_context(request, source))

    def _change_files(self, request: HttpRequest, source: Source) -> str:
        mine = editable(request, source)
        if request.POST.get("action") == "delete":
            actor = actor_of(request, source.organization)
            document = access.get_row(actor, Document, request.POST.get("file", ""), Level.EDIT, source=mine, file__isnull=False)
            return f"{document.key} was deleted with {pushes.delete_document(document)} chunks."
        result = files.store_files(mine, request.FILES.getlist("files"), user=request.user)
        for rejected in result.rejected:
            messages.error(request, f"{rejected.file_name}: {rejected.reason}")
        number = len(result.documents)
        were, them = ("was", "it") if number == 1 else ("were", "them")
        return f"{counted(number, 'file')} {were} stored. The next run takes {them} in."

    def _files_context(self, request: HttpRequest, source: Source) -> dict[str, Any]:
        rows = find_documents(Document.objects.filter(source=source), files_only=True)
        try:
            page = take_page(rows, cursor=request.GET.get("cursor"), limit=FILES_PAGE, ordering=NEWEST_FIRST)
        except LecternError:
            page = take_page(rows, cursor=None, limit=FILES_PAGE, ordering=NEWEST_FIRST)
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Files of {source}",
            "rows": page.items,
            "next_cursor": page.next_cursor,
            "limits": files.upload_limits(source),
            "may_write": _may_write(request, source),
            "back": page_of(source),
        }


def _seen(request: HttpRequest) -> Q:
    """The condition of documents that the person may see; an operator sees all."""
    if request.user.is_superuser:
        return Q()
    seen = Q(documents__pk__in=[])
    for actor in actors(request):
        seen |= Q(organization=actor.organization) & access.readable(actor, "documents__")
    return seen


def _of(request: HttpRequest, source: Source) -> dict[str, Any]:
    """Who asks for work on a source, and whose documents it is to touch."""
    actor = None if request.user.is_superuser else actor_of(request, source.organization)
    return {"actor": actor, "user": request.user}


def _may_write(request: HttpRequest, source: Source) -> bool:
    try:
        editable(request, source)
    except LecternError:
        return False
    return True
