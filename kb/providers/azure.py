"""The `azure-openai` provider: the same wire behind the path of a deployment, with a version of the API and another header for the key."""

from __future__ import annotations

from openai import AsyncAzureOpenAI, AsyncOpenAI

from config.errors import InvalidInput
from kb.providers.base import ModelSpec
from kb.providers.openai import IndexedClient, OpenAIProvider

DEFAULT_VERSION = "2024-10-21"


class AzureProvider(OpenAIProvider):
    @classmethod
    def check(cls, spec: ModelSpec) -> None:
        super().check(spec)
        missing = [name for name, value in (("endpoint", spec.endpoint), ("credential", spec.credential)) if not value]
        missing += [] if spec.parameters.get("deployment_name") else ["parameters.deployment_name"]
        if missing:
            raise InvalidInput(f"The model {spec.name} lacks {' and '.join(missing)}, without which Azure OpenAI cannot be asked.")

    @property
    def _model_name(self) -> str:
        return str(self._spec.parameters["deployment_name"])

    def _make_client(self) -> AsyncOpenAI:
        return _AzureClient(
            azure_endpoint=(self._spec.endpoint or "").rstrip("/").removesuffix("/openai"),
            api_version=str(self._spec.parameters.get("api_version", DEFAULT_VERSION)),
            **self._connection(),
        )


class _AzureClient(IndexedClient, AsyncAzureOpenAI):
    pass
