from ingestion.models.embedded_texts import EmbeddedText, ProviderCall, QueueBeat, WorkerHeartbeat
from ingestion.models.runs import IngestionRun, RunItem
from ingestion.models.schedules import ScheduleFire, SourceSchedule

__all__ = ["EmbeddedText", "IngestionRun", "ProviderCall", "QueueBeat", "RunItem", "ScheduleFire", "SourceSchedule", "WorkerHeartbeat"]
