"""Text from pictures and speech. Pure: runs in a child process of its own, with more memory than those that extract."""

from ingestion.recognize.base import Cue, Recognized
from ingestion.recognize.reading import perform

__all__ = ["Cue", "Recognized", "perform"]
