"""The `mistral` provider: OpenAI-shaped, with another name for shorter vectors (codestral-embed) and plain numbers."""

from __future__ import annotations

from typing import Any

from kb.providers.base import BatchLimits
from kb.providers.openai import OpenAIProvider


class MistralProvider(OpenAIProvider):
    default_endpoint = "https://api.mistral.ai/v1"
    defaults = BatchLimits(max_texts=96, max_tokens=12_000)  # it refuses more than 16,384 in one request

    def _settings(self) -> dict[str, Any]:
        wanted = self._spec.parameters.get("dimensions")
        return {"extra_body": {"encoding_format": "float", **({"output_dimension": wanted} if wanted else {})}}
