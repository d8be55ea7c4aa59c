"""Evaluations: figures over time as a picture and as a table, and what each question found."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import mark_safe
from pydantic import ValidationError
from unfold.decorators import action

from config.errors import LecternError
from kb.access import Level
from kb.admin.rows import ShownOnly
from kb.models import Document
from retrieval.admin.bases import OfKnowledgeBase, cancelled, choosable, chosen, page
from retrieval.belonging import rows_of
from retrieval.evaluation import running
from retrieval.evaluation.judging import shown, standing
from retrieval.evaluation.plot import Moment, draw_legend, draw_lines
from retrieval.evaluation.requests import WAYS, EvaluationInput
from retrieval.models import Evaluation

DRAWN = 50
QUESTIONS_SHOWN = 200
MEANS = (("ndcg", "nDCG"), ("recall", "Recall"), ("mrr", "MRR"))


@admin.register(Evaluation)
class EvaluationAdmin(ShownOnly, OfKnowledgeBase):
    list_display = ("created_at", "knowledge_base", "version", "status", "progress", "comment", "own", "hybrid", "vector", "keyword")
    list_filter = (("knowledge_base", admin.RelatedOnlyFieldListFilter), "status")
    list_select_related = ("knowledge_base",)
    search_fields = ("comment", "knowledge_base__name")
    ordering = ("-created_at",)
    actions_list = ("evaluate",)
    actions_detail = ("cancel_evaluation",)
    list_before_template = "retrieval/admin/plots.html"
    change_form_outer_before_template = "retrieval/admin/questions.html"
    fields = (
        "knowledge_base",
        "version",
        "status",
        "comment",
        "progress",
        "error",
        "settings",
        "requested_name",
        "started_at",
        "finished_at",
    )
    readonly_fields = fields

    @admin.display(description="done")
    def progress(self, obj: Evaluation) -> str:
        return f"{obj.done} of {obj.total}"

    @admin.display(description="nDCG own")
    def own(self, obj: Evaluation) -> str:
        return _ndcg(obj, "own")

    @admin.display(description="hybrid")
    def hybrid(self, obj: Evaluation) -> str:
        return _ndcg(obj, "hybrid")

    @admin.display(description="vector")
    def vector(self, obj: Evaluation) -> str:
        return _ndcg(obj, "vector")

    @admin.display(description="keyword")
    def keyword(self, obj: Evaluation) -> str:
        return _ndcg(obj, "keyword")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        drawn = self._drawn(request)
        return super().changelist_view(request, {**(extra_context or {}), **(pictures(drawn) if drawn else {})})

    def _drawn(self, request: HttpRequest) -> list[Evaluation]:
        """Evaluations of the knowledge base that the list is narrowed to, else of the one evaluated last; of one k, oldest first."""
        rows = self.get_queryset(request).exclude(figures={}).select_related("knowledge_base").order_by("-created_at")
        try:
            rows = rows.filter(knowledge_base=UUID(request.GET["knowledge_base__id__exact"]))
        except (KeyError, ValueError):
            latest = rows.first()
            rows = rows.filter(knowledge_base=latest.knowledge_base_id) if latest else rows.none()
        latest = rows.first()
        return list(reversed(rows.filter(settings__k=latest.settings["k"])[:DRAWN])) if latest else []

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        found = self.get_object(request, object_id)
        told = details(found) if found else {}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **told})

    @action(description="Evaluate", icon="monitoring", url_path="evaluate")
    def evaluate(self, request: HttpRequest) -> HttpResponse:
        """Choose a knowledge base, then a worker asks its judged questions."""
        named = request.POST.get("knowledge_base") or request.GET.get("knowledge_base", "")
        if request.method == "POST":
            try:
                actor, found = chosen(request, named, Level.EDIT)
                k = request.POST.get("k", "10")
                wanted = EvaluationInput(k=int(k) if k.isascii() and k.isdigit() else 0, comment=request.POST.get("comment", "")[:300])
                made = running.start_evaluation(actor, found, wanted)
            except ValidationError:
                messages.error(request, "k must be a number from 1 to 50.")
            except LecternError as error:
                messages.error(request, error.message)
            else:
                return HttpResponseRedirect(reverse("admin:retrieval_evaluation_change", args=[made.pk]))
        return page(self, request, "evaluate", title="Evaluate", rows=choosable(request, Level.EDIT), named=named)

    @action(description="Cancel", icon="cancel", url_path="cancel")
    def cancel_evaluation(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return cancelled(self, request, object_id)


def _ndcg(obj: Evaluation, way: str) -> str:
    value = obj.figures.get(way, {}).get("ndcg")
    return "-" if value is None else f"{value:.3f}"


def pictures(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """One picture a figure, each with a line a way, and the same numbers as rows."""
    ways = [way for way in WAYS if any(way in one.figures for one in evaluations)]
    k = evaluations[-1].settings["k"]
    moments = [
        Moment(f"{one.created_at:%d %b} v{one.version}", f"version {one.version}, {one.created_at:%Y-%m-%d %H:%M} {one.comment}".strip())
        for one in evaluations
    ]
    drawn = []
    for name, title in MEANS:
        series = {way: [one.figures.get(way, {}).get(name) for one in evaluations] for way in ways}
        drawn.append(draw_lines(title if name == "mrr" else f"{title}@{k}", moments, series))
    rows = [(one, [[one.figures.get(way, {}).get(name) for name, _ in MEANS] for way in ways]) for one in reversed(evaluations)]
    return {
        # Our own markup; what comes from people is escaped there.
        "pictures": [mark_safe(one) for one in drawn],
        "legend": mark_safe(draw_legend(ways)),
        "drawn_base": evaluations[-1].knowledge_base,
        "ways": ways,
        "means": [title for _, title in MEANS],
        "drawn_rows": rows,
        "k": k,
    }


def details(evaluation: Evaluation) -> dict[str, Any]:
    """Figures beside those of the evaluation before it, and the questions, the worst first."""
    before = (
        rows_of(evaluation.knowledge_base, Evaluation)
        .filter(created_at__lt=evaluation.created_at, settings__k=evaluation.settings["k"])
        .exclude(figures={})
        .order_by("-created_at")
        .first()
    )
    ways = evaluation.settings["ways"]
    figures = []
    for way in [way for way in ways if way in evaluation.figures]:
        one = evaluation.figures[way]
        old = before.figures.get(way, {}) if before else {}
        cells = [(one[name], _difference(one[name], old.get(name))) for name, _ in MEANS]
        figures.append((way, cells, one))
    rows = [row for row in running.questions(evaluation).order_by("place") if row.results]
    rows.sort(key=lambda row: sum(one.get("ndcg", 1.0) for one in row.results["ways"].values()))
    rows = rows[:QUESTIONS_SHOWN]
    expected = shown(evaluation.knowledge_base, [row.expected for row in rows], quotes=False)
    found = {UUID(one) for row in rows for way in row.results["ways"].values() for one in way["found"][:3]}
    titles = {
        str(document.id): str(document)
        for document in Document.objects.filter(standing, knowledge_base=evaluation.knowledge_base_id, id__in=found).only(
            "id", "title", "key"
        )
    }
    questions = [
        (row, wanted, [_told(row.results["ways"].get(way), titles) for way in ways]) for row, wanted in zip(rows, expected, strict=True)
    ]
    return {"evaluation": evaluation, "before": before, "figures": figures, "ways": ways, "questions": questions, "means": MEANS}


def _difference(value: float | None, old: float | None) -> str:
    return "" if value is None or old is None else f"{value - old:+.3f}"


def _told(result: dict[str, Any] | None, titles: dict[str, str]) -> dict[str, Any]:
    """How one way answered, with the titles of what came first."""
    if result is None:
        return {}
    return {**result, "first": [titles.get(one, "a document that is gone") for one in result["found"][:3]]}
