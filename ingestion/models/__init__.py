from ingestion.models.embedded_texts import EmbeddedText, ProviderCall, QueueBeat, WorkerHeartbeat
from ingestion.models.parts import RecognizedPart
from ingestion.models.runs import CrawledHost, IngestionRun, RunItem
from ingestion.models.schedules import ScheduleFire, SourceSchedule

__all__ = [
    "CrawledHost",
    "EmbeddedText",
    "IngestionRun",
    "ProviderCall",
    "QueueBeat",
    "RecognizedPart",
    "RunItem",
    "ScheduleFire",
    "SourceSchedule",
    "WorkerHeartbeat",
]
