"""Files and documents with how far they have come, which only the pipeline can tell."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from ingestion.services.documents import with_state
from ingestion.services.file_status import Status, failure_of, with_status
from kb.admin import contents
from kb.models import Document, File

ERROR_SHOWN = 200

for model in (File, Document):
    if admin.site.is_registered(model):
        admin.site.unregister(model)  # `kb` shows the rows alone


@admin.register(File)
class FileAdmin(contents.FileAdmin):
    list_display = (
        "name",
        "version",
        "resource",
        "status",
        "error",
        "visibility",
        "organization",
        "media_type",
        "size_shown",
        "created_at",
    )
    fields = (*contents.FileAdmin.fields, "status", "error", "visibility")
    readonly_fields = (*contents.FileAdmin.readonly_fields, "status", "error", "visibility")

    def get_queryset(self, request: HttpRequest) -> QuerySet[File]:
        return with_status(super().get_queryset(request))

    @admin.display(description="status", ordering="status")
    def status(self, file: Any) -> str:
        return file.status if file.resource_id else "-"  # a file of an upload source stands as its document does

    @admin.display(description="error")
    def error(self, file: Any) -> str:
        return failure_of(file)[1][:ERROR_SHOWN] if file.resource_id and file.status == Status.FAILED else "-"

    @admin.display(description="visibility", ordering="resource__visibility")
    def visibility(self, file: Any) -> str:
        return file.resource.visibility if file.resource_id else "-"


@admin.register(Document)
class DocumentAdmin(contents.DocumentAdmin):
    list_display = (*contents.DocumentAdmin.list_display[:4], "state", "error", "visibility", *contents.DocumentAdmin.list_display[4:])
    list_filter = (*contents.DocumentAdmin.list_filter, "visibility")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        return with_state(super().get_queryset(request))

    @admin.display(description="state", ordering="state")
    def state(self, document: Any) -> str:
        return document.state.replace("_", " ")

    @admin.display(description="error", ordering="last_error")
    def error(self, document: Document) -> str:
        return document.last_error[:ERROR_SHOWN] or "-"
