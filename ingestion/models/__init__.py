from ingestion.models.embedded_texts import EmbeddedText, ProviderCall, QueueBeat, WorkerHeartbeat
from ingestion.models.runs import IngestionRun, RunItem, ScheduleFire

__all__ = ["EmbeddedText", "IngestionRun", "ProviderCall", "QueueBeat", "RunItem", "ScheduleFire", "WorkerHeartbeat"]
