from ingestion.models.embedded_texts import EmbeddedText, ProviderCall, QueueBeat, WorkerHeartbeat
from ingestion.models.runs import CrawledHost, IngestionRun, RunItem
from ingestion.models.schedules import ScheduleFire, SourceSchedule

__all__ = [
    "CrawledHost",
    "EmbeddedText",
    "IngestionRun",
    "ProviderCall",
    "QueueBeat",
    "RunItem",
    "ScheduleFire",
    "SourceSchedule",
    "WorkerHeartbeat",
]
