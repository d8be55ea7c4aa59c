"""Actions that ask first: a page that says what will happen, then one call of a service."""

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.admin import ModelAdmin

from config.errors import LecternError


def page_of(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def find_object(model_admin: ModelAdmin, request: HttpRequest, object_id: str) -> Any:
    """The row if the person may see it; what cannot be seen is absent."""
    found = model_admin.get_object(request, object_id)
    if found is None:
        raise Http404
    return found


def confirmed(
    model_admin: ModelAdmin,
    request: HttpRequest,
    row: Any,
    *,
    title: str,
    sentences: Sequence[str],
    button: str,
    act: Callable[[], str],
) -> HttpResponse:
    """GET asks; POST calls `act`, whose sentence is shown, as is the sentence of its refusal."""
    if request.method != "POST":
        context = {
            **model_admin.admin_site.each_context(request),
            "opts": model_admin.opts,
            "title": title,
            "sentences": sentences,
            "button": button,
            "back": page_of(row),
        }
        return TemplateResponse(request, "ingestion/admin/confirmation.html", context)
    carry_out(request, act)
    return HttpResponseRedirect(page_of(row))


def carry_out(request: HttpRequest, act: Callable[[], str]) -> bool:
    """Call `act` and show its sentence, or that of its refusal."""
    try:
        messages.success(request, act())
    except LecternError as error:
        messages.error(request, error.message)
        return False
    return True
