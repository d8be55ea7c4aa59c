"""The sidebar: what people come for, in groups. The other tables are reached from these pages."""

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

# Models by their label: pages of the apps above `kb` stand here too, and are not imported.
GROUPS: dict[str, list[tuple[str, str, str]]] = {
    "Knowledge": [
        ("Knowledge bases", "kb.KnowledgeBase", "library_books"),
        ("Sources", "kb.Source", "source"),
        ("Documents", "kb.Document", "description"),
        ("Files", "kb.File", "attach_file"),
        ("Datasets", "kb.Dataset", "table_view"),
        ("Channels", "kb.Channel", "move_to_inbox"),
        ("Runs", "ingestion.IngestionRun", "sync"),
        ("Schedules", "ingestion.SourceSchedule", "schedule"),
    ],
    "Retrieval": [
        ("Traces", "retrieval.RetrievalTrace", "manage_search"),
        ("Judgements", "retrieval.Judgement", "rule"),
        ("Evaluations", "retrieval.Evaluation", "monitoring"),
        ("Recall checks", "retrieval.RecallCheck", "troubleshoot"),
        ("Embedding models", "kb.EmbeddingModel", "hub"),
        ("Rerankers", "kb.Reranker", "swap_vert"),
        ("Changes of models", "kb.SpaceChange", "swap_horiz"),
        ("Bound services", "kb.ServiceBinding", "link"),
    ],
    "Access": [
        ("Organizations", "kb.Organization", "apartment"),
        ("Users", "kb.User", "person"),
        ("Memberships", "kb.Membership", "group"),
        ("API keys", "kb.ApiKey", "key"),
        ("Secrets", "kb.Secret", "lock"),
        ("Grants", "kb.Grant", "lock_open"),
    ],
    "Operations": [
        ("Workers", "ingestion.WorkerHeartbeat", "monitor_heart"),
        ("Queue beats", "ingestion.QueueBeat", "timer"),
        ("Usage", "kb.Usage", "payments"),
        ("Provider calls", "ingestion.ProviderCall", "receipt_long"),
        ("Embedded texts", "ingestion.EmbeddedText", "data_array"),
        ("Run items", "ingestion.RunItem", "checklist"),
    ],
}


def groups_for(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups with the pages that the person may open; a group without one is left out."""
    found = []
    for title, pages in GROUPS.items():
        items = [
            {"title": name, "icon": icon, "link": reverse(f"admin:{label.replace('.', '_').lower()}_changelist")}
            for name, label, icon in pages
            if admin.site._registry[apps.get_model(label)].has_module_permission(request)
        ]
        if items:
            found.append({"title": title, "separator": True, "items": items})
    return found
