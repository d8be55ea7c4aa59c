"""From a registered model to a provider that can be called: the one place where its credential is resolved."""

from dataclasses import replace
from uuid import UUID

from django.utils import timezone

from config import secrets
from kb import services
from kb.models import EmbeddingModel, EmbeddingSpace
from kb.providers import ModelSpec, load_provider
from kb.schemas import fingerprints


def spec_of(model: EmbeddingModel, *, organization_id: UUID | None = None) -> ModelSpec:
    """The model with its secret resolved. `organization_id` is whose secrets count for a model of the whole installation."""
    owner = model.organization_id or organization_id

    def lookup(name: str) -> str:
        # An organization's own model may have an endpoint of its choice; the installation's secrets do not go there.
        return services.secret_value(owner, name, own_only=model.organization_id is not None)

    return replace(
        plain_spec(model),
        credential=lookup(model.credential) if model.credential else None,
        parameters=secrets.resolve(model.parameters, lookup),
    )


def plain_spec(model: EmbeddingModel) -> ModelSpec:
    """The model without its secrets: enough to count its tokens and to cut text for it, also when a secret is gone."""
    return ModelSpec(
        name=model.name,
        provider=model.provider,
        model=model.model,
        dimension=model.dimension,
        max_input_tokens=model.max_input_tokens,
        endpoint=model.endpoint or None,
        parameters=model.parameters,
        query_prefix=model.query_prefix,
        document_prefix=model.document_prefix,
        # Rows without an organization were registered by an installation operator; only those may name a private network.
        trusted=model.organization_id is None,
    )


def provider_of(model: EmbeddingModel, *, organization_id: UUID, threads: int | None = None):
    """(spec, provider), loaded once per process and settings."""
    spec = spec_of(model, organization_id=organization_id)
    return spec, load_provider(spec, threads=threads)


def ensure_space(model: EmbeddingModel) -> EmbeddingSpace:
    """The model's space, made with the model; it is provisioned (its partition attached) by the default queue."""
    space, _ = EmbeddingSpace.objects.get_or_create(
        embedding_model=model,
        defaults={"dimension": model.dimension, "fingerprint": model_fingerprint(model), "created_at": timezone.now()},
    )
    return space


def model_fingerprint(model: EmbeddingModel) -> str:
    """Of everything that changes a vector: not the name, not the credential."""
    return fingerprints.embed_fingerprint(
        provider=model.provider,
        model=model.model,
        dimension=model.dimension,
        query_prefix=model.query_prefix,
        document_prefix=model.document_prefix,
        parameters=model.parameters,
    )
