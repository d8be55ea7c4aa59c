"""Searches in the admin: asked there, read by whoever may see all that was searched, their hits judged with one click."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from unfold.decorators import action

from config.errors import LecternError
from kb.access import Actor, Level
from kb.admin.rows import RowAdmin, ShownOnly, actor_of
from retrieval.admin.bases import choosable, chosen, page
from retrieval.evaluation.judging import judge_hits
from retrieval.models import RetrievalTrace
from retrieval.requests import SearchRequest
from retrieval.search import RetrievalFailed, search
from retrieval.traces import get_trace, visible_traces

MODES = ("", "hybrid", "vector", "keyword")


class JudgeForm(forms.Form):
    knowledge_base = forms.UUIDField()
    citation = forms.CharField(max_length=40)
    grade = forms.IntegerField(min_value=1, max_value=3)


@admin.register(RetrievalTrace)
class RetrievalTraceAdmin(ShownOnly, RowAdmin):
    list_display = ("created_at", "query", "mode", "reason", "degraded", "organization")
    list_filter = ("reason", "degraded", "mode", ("organization", admin.RelatedOnlyFieldListFilter))
    search_fields = ("query",)
    ordering = ("-created_at",)
    list_select_related = ("organization",)
    actions_list = ("try_search",)
    change_form_outer_before_template = "retrieval/admin/hits.html"
    exclude = ("hits",)

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk__in=visible_traces(actor).values("pk"))

    def get_urls(self) -> list[Any]:
        judge = path("<path:object_id>/judge/", self.admin_site.admin_view(self.judge_view), name="retrieval_retrievaltrace_judge")
        return [judge, *super().get_urls()]

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        found = self.get_object(request, object_id)
        editable = choosable(request, Level.EDIT).filter(id__in=found.knowledge_base_ids) if found else []
        explanation = found.settings.get("explanation", {}) if found else {}
        told = {
            "trace": found,
            "may_judge": {str(row.id) for row in editable},
            "explanation": explanation if "sides" in explanation else None,
            "passages": [("Hits", explanation.get("hits")), ("Candidates that are no hits", explanation.get("dropped_candidates"))],
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **told})

    @action(description="Search", icon="search", url_path="search")
    def try_search(self, request: HttpRequest) -> HttpResponse:
        """Ask, and look at the trace."""
        asked = {name: request.POST.get(name, "") for name in ("query", "knowledge_base", "mode")}
        if request.method == "POST":
            actor, found = chosen(request, asked["knowledge_base"], Level.VIEW)
            mode = asked["mode"] if asked["mode"] in MODES[1:] else None
            try:
                wanted = SearchRequest(query=asked["query"][:10_000], knowledge_bases=[str(found.id)], mode=mode, explain=True)
                trace_id = search(actor, wanted).trace_id
            except ValueError:
                messages.error(request, "Write what you are looking for.")
            except RetrievalFailed as failure:
                messages.error(request, failure.message)
                return _to_trace(failure.extra["trace_id"])
            else:
                return _to_trace(trace_id)
        return page(self, request, "search", title="Search", rows=choosable(request, Level.VIEW), modes=MODES, asked=asked)

    def judge_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Expect a hit for the question of the trace."""
        found = self.get_object(request, object_id)
        form = JudgeForm(request.POST)
        if found is None or request.method != "POST" or not form.is_valid():
            raise Http404
        try:
            actor, knowledge_base = chosen(request, str(form.cleaned_data["knowledge_base"]), Level.EDIT)
            trace = get_trace(actor_of(request, found.organization), found.pk)
            judged = judge_hits(actor, knowledge_base, trace, [form.cleaned_data["citation"]], grade=form.cleaned_data["grade"])
            messages.success(request, f"“{judged}” expects this now, {len(judged.expected)} in all.")
        except LecternError as error:
            messages.error(request, error.message)
        return _to_trace(found.pk)


def _to_trace(trace_id: Any) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:retrieval_retrievaltrace_change", args=[trace_id]))
