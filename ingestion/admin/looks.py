"""Looking before a run and after it: what one would do, and why a page is not there."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.decorators import action

from config.errors import LecternError
from ingestion.admin.confirmations import find_object, page_of
from ingestion.services import explanations, previews
from kb import access
from kb.access import Level
from kb.admin.rows import actor_of
from kb.models import Source


class Looks:
    """Actions of the page of a source."""

    @action(description="Preview", url_path="preview")
    def preview(self, request: HttpRequest, object_id: str) -> HttpResponse:
        source = find_object(self, request, object_id)
        context = {"title": f"What a run of {source} would do", "is_site": source.kind == Source.Kind.WEB}
        if request.method == "POST":
            try:
                context["preview"] = previews.preview_source(editable(request, source))
            except LecternError as error:
                messages.error(request, error.message)
        return self._page(request, source, "ingestion/admin/preview.html", context)

    @action(description="Why is a page missing?", url_path="why")
    def why(self, request: HttpRequest, object_id: str) -> HttpResponse:
        source = find_object(self, request, object_id)
        url = request.GET.get("url", "").replace("\0", "")
        context: dict[str, Any] = {"title": f"Why is a page of {source} missing?", "url": url}
        if url.strip():
            try:
                context["found"] = explanations.explain_address(source, url)
            except LecternError as error:
                messages.error(request, error.message)
        return self._page(request, source, "ingestion/admin/why.html", context)

    def _page(self, request: HttpRequest, source: Source, template: str, context: dict[str, Any]) -> HttpResponse:
        every = {**self.admin_site.each_context(request), "opts": self.opts, "back": page_of(source)}
        return TemplateResponse(request, template, {**every, **context})


def editable(request: HttpRequest, source: Source) -> Source:
    """The source, for who may edit its knowledge base; else `Forbidden`."""
    actor = actor_of(request, source.organization)
    return access.get_source(actor, access.get_knowledge_base(actor, source.knowledge_base_id, Level.EDIT), source.id)
