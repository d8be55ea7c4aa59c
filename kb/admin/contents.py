"""What knowledge bases hold: spaces, blobs, files, documents and chunks. Read only; the pipeline writes them."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from kb import access
from kb.access import Actor
from kb.admin.rows import RowAdmin, ShownOnly
from kb.models import Blob, Chunk, Document, EmbeddingSpace, File, Upload

CHUNKS_SHOWN = 100


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(ShownOnly, RowAdmin):
    list_display = ("id", "embedding_model", "dimension", "provisioned_at", "created_at")
    list_filter = ("dimension",)
    list_select_related = ("embedding_model",)

    def seen_by(self, actor: Actor) -> Q:
        return Q(embedding_model__in=access.embedding_models(actor).values("pk"))


@admin.register(Blob)
class BlobAdmin(ShownOnly, RowAdmin):
    list_display = ("id", "organization", "size", "sha256_shown", "touched_at")
    list_filter = (("organization", admin.RelatedOnlyFieldListFilter),)
    fields = ("organization", "size", "sha256_shown", "storage_key", "created_at", "touched_at")
    readonly_fields = ("sha256_shown",)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser  # a blob has no knowledge base to judge by

    @admin.display(description="SHA-256")
    def sha256_shown(self, obj: Any) -> str:
        return bytes(obj.sha256).hex()


@admin.register(File)
class FileAdmin(ShownOnly, RowAdmin):
    list_display = ("name", "version", "resource", "organization", "media_type", "size_shown", "created_at")
    list_filter = (("organization", admin.RelatedOnlyFieldListFilter), "family", "media_type")
    search_fields = ("name",)
    list_select_related = ("organization", "resource")
    fields = (
        "organization",
        "name",
        "resource",
        "version",
        "policy",
        "family",
        "media_type",
        "size_shown",
        "sha256_shown",
        "created_by",
        "created_at",
        "used_by",
    )
    readonly_fields = ("size_shown", "sha256_shown", "used_by")

    def seen_by(self, actor: Actor) -> Q:
        """Files that a visible knowledge base has and that are not somebody else's private ones, and the person's own."""
        seen = access.rows(actor, Document)
        of_document, of_version = Q(pk__in=seen.values("file")), Q(resource__in=seen.values("pk"))
        return Q(organization=actor.organization) & (Q(created_by=actor.user) | of_document | of_version)

    @admin.display(description="SHA-256")
    def sha256_shown(self, obj: File) -> str:
        return bytes(obj.sha256).hex()

    @admin.display(description="size", ordering="size")
    def size_shown(self, obj: File) -> str:
        return filesizeformat(obj.size)

    @admin.display(description="documents")
    def used_by(self, obj: File) -> SafeString:
        return links("kb_document", obj.documents.all()[:CHUNKS_SHOWN])


@admin.register(Upload)
class UploadAdmin(ShownOnly, RowAdmin):
    """Files on their way in. An upload is its maker's until it is a file."""

    list_display = ("file_name", "organization", "target", "received", "size", "created_by", "expires_at", "finished_at")
    list_filter = ("target", "is_resumable", ("organization", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("organization", "created_by")
    exclude = ("sha256", "parts", "details")
    ordering = ("-id",)

    def seen_by(self, actor: Actor) -> Q:
        return Q(organization=actor.organization, created_by=actor.user)


@admin.register(Document)
class DocumentAdmin(ShownOnly, RowAdmin):
    list_display = (
        "shown",
        "key_shown",
        "knowledge_base",
        "source_name",
        "media_type",
        "language",
        "chunk_count",
        "tombstoned_at",
        "last_ingested_at",
    )
    list_filter = (
        ("knowledge_base", admin.RelatedOnlyFieldListFilter),
        ("source", admin.RelatedOnlyFieldListFilter),
        "media_type",
        "language",
        ("tombstoned_at", admin.EmptyFieldListFilter),
    )
    search_fields = ("title", "key")
    list_select_related = ("knowledge_base", "source__knowledge_base")
    fieldsets = (
        (None, {"fields": ("title", "key", "url", "knowledge_base", "source", "file", "media_type", "language", "metadata")}),
        ("Whose", {"fields": ("visibility", "owner", "owner_key", "answering")}),
        (
            "State",
            {
                "fields": (
                    "warnings_shown",
                    "last_error",
                    "last_reason",
                    "missed_runs",
                    "tombstoned_at",
                    "first_ingested_at",
                    "last_ingested_at",
                    "seen_at",
                )
            },
        ),
        ("Made with", {"fields": ("space", "generation", "epoch", "size", "characters", "extractor_version")}),
        ("Chunks", {"fields": ("chunk_count", "chunks_shown")}),
    )
    readonly_fields = ("warnings_shown", "chunks_shown")

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk__in=access.rows(actor, Document).values("pk"))

    @admin.display(description="document", ordering="title")
    def shown(self, obj: Document) -> str:
        return str(obj)[:120]

    @admin.display(description="file name or address", ordering="key")
    def key_shown(self, obj: Document) -> str:
        return obj.key[:120]

    @admin.display(description="source", ordering="source__name")
    def source_name(self, obj: Document) -> str:
        return obj.source.name  # a source's own words repeat its knowledge base

    @admin.display(description="warnings")
    def warnings_shown(self, obj: Document) -> SafeString:
        shown = format_html_join("", "<li>{}</li>", ((warning,) for warning in obj.warnings))
        return format_html('<ul class="list-disc pl-4">{}</ul>', shown) if shown else format_html("{}", "none")

    @admin.display(description="chunks")
    def chunks_shown(self, obj: Document) -> SafeString:
        chunks = list(obj.chunks.order_by("ordinal")[:CHUNKS_SHOWN])
        shown = format_html_join(
            "",
            '<div style="margin-bottom: 1rem"><div style="opacity: .7">{} · {} tokens · {}–{}{}</div>'
            '<div style="white-space: pre-wrap; overflow-wrap: anywhere">{}</div></div>',
            ((place(chunk), chunk.tokens, chunk.start, chunk.end, page(chunk), chunk.text) for chunk in chunks),
        )
        url = f"{reverse('admin:kb_chunk_changelist')}?document__id__exact={obj.pk}"
        more = format_html('<a href="{}" class="text-primary-600">every chunk in a list</a>', url)
        return format_html("{}{}", shown, more) if chunks else format_html("{}", "none")


@admin.register(Chunk)
class ChunkAdmin(ShownOnly, RowAdmin):
    list_display = ("id", "document", "ordinal", "where", "tokens", "language", "start_of_text")
    list_filter = (("knowledge_base", admin.RelatedOnlyFieldListFilter), "language")
    list_select_related = ("document",)
    ordering = ("document", "ordinal")
    fields = ("document", "knowledge_base", "ordinal", "where", "start", "end", "page_start", "page_end", "tokens", "language", "text")
    readonly_fields = ("where",)

    def seen_by(self, actor: Actor) -> Q:
        return Q(document__in=access.rows(actor, Document).values("pk"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chunk]:
        return super().get_queryset(request).select_related("document")

    @admin.display(description="heading")
    def where(self, obj: Chunk) -> str:
        return place(obj)

    @admin.display(description="text")
    def start_of_text(self, obj: Chunk) -> str:
        return obj.text[:100]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        return lookup.startswith("document__id") or super().lookup_allowed(lookup, value, request)


def place(chunk: Chunk) -> str:
    return " › ".join([f"#{chunk.ordinal}", *chunk.heading_path])


def page(chunk: Chunk) -> str:
    if chunk.page_start is None:
        return ""
    return f" · page {chunk.page_start}" + (f"–{chunk.page_end}" if chunk.page_end not in (None, chunk.page_start) else "")


def links(model: str, rows: Any) -> SafeString:
    pairs = ((reverse(f"admin:{model}_change", args=[row.pk]), row) for row in rows)
    return format_html_join(", ", '<a href="{}" class="text-primary-600">{}</a>', pairs)
