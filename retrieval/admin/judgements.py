"""Judgements: written as lines, or taken in as a file."""

import csv
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html_join
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextareaWidget

from config.body import validate
from config.errors import InvalidInput, LecternError
from kb.access import Level
from kb.admin.rows import ServiceForm, actor_of, adopt
from retrieval.admin.bases import OfKnowledgeBase, choosable, chosen, page
from retrieval.api.judgements import download
from retrieval.belonging import row_of
from retrieval.evaluation import exchange, judging
from retrieval.evaluation.requests import JudgementInput
from retrieval.models import Judgement

_HELP = (
    "A line for each: document (its id, address or key), grade (1 helps, 2 answers in part, 3 answers), words that the passage must hold."
)


class JudgementForm(ServiceForm):
    question = forms.CharField(widget=UnfoldAdminTextareaWidget({"rows": 2}))
    expects = forms.CharField(widget=UnfoldAdminTextareaWidget({"rows": 6, "spellcheck": "false"}), help_text=_HELP)
    note = forms.CharField(widget=UnfoldAdminTextareaWidget({"rows": 2}), required=False)

    class Meta:
        model = Judgement
        fields = ("knowledge_base", "question", "note")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.initial["expects"] = exchange.write_lines([one["document"], one["grade"], one["quote"]] for one in self.instance.expected)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if {"question", "expects"} <= cleaned.keys():
            try:
                cleaned["wanted"] = _read(cleaned)
            except InvalidInput as error:
                for field, message in self.sentences(error):
                    self.add_error(field, message)
        return cleaned

    def sentences(self, refusal: LecternError) -> list[tuple[str | None, str]]:
        """What is expected is one field here: its faults are told with their line."""
        told = super().sentences(refusal)
        return [("expects", text) if field is None and text.startswith("expected") else (field, text) for field, text in told]


def _read(cleaned: dict[str, Any]) -> JudgementInput:
    expected = []
    for cells in csv.reader(cleaned["expects"].splitlines()):
        document, grade, quote, *more = [*(cell.strip() for cell in cells), "", "", ""][:4] if cells else [""] * 4
        if more[0] or (grade and grade not in ("1", "2", "3")):
            raise InvalidInput(
                "", errors=[{"path": f"expected[{len(expected)}]", "message": "write document, grade, words; quote a comma"}]
            )
        if document:
            expected.append({"document": document, "grade": int(grade or 1), "quote": quote})
    return validate({"question": cleaned["question"], "expected": expected, "note": cleaned["note"]}, JudgementInput)


@admin.register(Judgement)
class JudgementAdmin(OfKnowledgeBase):
    form = JudgementForm
    list_display = ("question_shown", "knowledge_base", "expected_count", "author_name", "updated_at")
    list_filter = (("knowledge_base", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("knowledge_base",)
    search_fields = ("question", "note")
    ordering = ("-created_at",)
    fields = ("knowledge_base", "question", "expects", "stands", "note")
    actions_list = ("file",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("stands", "knowledge_base") if obj else ("stands",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is not None and not self.has_change_permission(request, obj):
            return ("knowledge_base", "question", "stands", "note")
        return self.fields if obj else [name for name in self.fields if name != "stands"]

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "knowledge_base":
            kwargs["queryset"] = choosable(request, Level.EDIT)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    @admin.display(description="question", ordering="question")
    def question_shown(self, obj: Judgement) -> str:
        return obj.question[:100]

    @admin.display(description="expects")
    def expected_count(self, obj: Judgement) -> int:
        return len(obj.expected)

    @admin.display(description="what it expects")
    def stands(self, obj: Judgement) -> str:
        names = {"there": "", "gone": " – gone, not counted", "quote_gone": " – no passage holds the words, not counted"}
        told = judging.shown(obj.knowledge_base, [obj.expected])[0]
        return format_html_join(
            "", "<div>{} (grade {}){}</div>", ((one.title or one.document_id, one.grade, names[one.state]) for one in told)
        )

    def save_model(self, request: HttpRequest, obj: Judgement, form: Any, change: bool) -> None:
        wanted = form.cleaned_data["wanted"]
        knowledge_base = obj.knowledge_base if change else form.cleaned_data["knowledge_base"]
        actor = actor_of(request, knowledge_base.organization)
        found = judging.editable(actor, knowledge_base.pk)
        if change:
            adopt(obj, judging.replace_judgement(actor, row_of(found, Judgement, obj.pk), wanted))
        else:
            adopt(obj, judging.create_judgement(actor, found, wanted))

    @action(description="Import or export", icon="upload_file", url_path="file")
    def file(self, request: HttpRequest) -> HttpResponse:
        """One knowledge base's judgements as JSON or CSV, out or in."""
        named = request.POST.get("knowledge_base") or request.GET.get("knowledge_base", "")
        if request.method == "POST" and "import" in request.POST and (file := request.FILES.get("file")):
            try:
                actor, found = chosen(request, named, Level.EDIT)
                if file.size > exchange.MAX_BYTES:
                    raise InvalidInput(f"The file is larger than {exchange.MAX_BYTES:,} bytes. Split it.")
                wanted = exchange.read_file(file.read(), is_csv=file.name.lower().endswith(".csv"))
                taken = exchange.import_judgements(actor, found, wanted)
            except LecternError as error:
                messages.error(request, error.message)
            else:
                messages.success(request, f"{taken.created} judgements were made, {taken.changed} replaced.")
                return HttpResponseRedirect(f"{reverse('admin:retrieval_judgement_changelist')}?knowledge_base__id__exact={found.pk}")
        elif request.GET.get("form") in ("csv", "json"):
            _, found = chosen(request, named, Level.VIEW)
            return download(found.pk, exchange.export_judgements(found), request.GET["form"])
        rows = choosable(request, Level.VIEW)
        return page(self, request, "judgement_file", title="Judgements as a file", rows=rows, named=named)
