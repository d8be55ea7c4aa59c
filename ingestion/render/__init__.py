"""Pages that need a browser: Chromium in a process of its own that reaches nothing but what `ask` gives. Pure: no models, no settings."""

from ingestion.render.base import Ask, Rendered, RenderFailed, RenderLimits
from ingestion.render.chromium import missing
from ingestion.render.renderer import Renderer

__all__ = ["Ask", "RenderFailed", "RenderLimits", "Rendered", "Renderer", "missing"]
