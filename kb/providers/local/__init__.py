"""Models that compute in this process. No backend is imported before a model of it is loaded."""

from kb.providers.local.provider import LocalProvider

__all__ = ["LocalProvider"]
