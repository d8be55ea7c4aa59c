"""What each provider of embedding models takes. A key that is not here is refused: a provider would ignore it, and nobody would notice."""

from dataclasses import dataclass

_CALLS = frozenset({"timeout", "batch_texts", "batch_tokens", "tokenizer"})


@dataclass(frozen=True, slots=True)
class ProviderRules:
    """`dimensions` names the parameter that shortens vectors. A credential is needed where no `endpoint` is given, or one must be."""

    parameters: frozenset[str] = frozenset()
    required_parameters: tuple[str, ...] = ()
    dimensions: str | None = None
    takes_endpoint: bool = True
    needs_endpoint: bool = False
    takes_credential: bool = True
    needs_credential: bool = False


PROVIDERS: dict[str, ProviderRules] = {
    "local": ProviderRules(
        parameters=frozenset({"backend", "precision", "device", "sha256", "tokenizer"}),
        takes_endpoint=False,
        takes_credential=False,
    ),
    "hashing": ProviderRules(parameters=frozenset({"tokenizer"}), takes_endpoint=False, takes_credential=False),
    "openai": ProviderRules(parameters=_CALLS | {"dimensions"}, dimensions="dimensions", needs_credential=True),
    "azure-openai": ProviderRules(
        parameters=_CALLS | {"dimensions", "deployment_name", "api_version"},
        required_parameters=("deployment_name",),
        dimensions="dimensions",
        needs_endpoint=True,
        needs_credential=True,
    ),
    "ollama": ProviderRules(parameters=_CALLS | {"dimensions", "keep_alive"}, dimensions="dimensions"),
    "mistral": ProviderRules(parameters=_CALLS | {"dimensions"}, dimensions="dimensions", needs_credential=True),
    "bedrock": ProviderRules(parameters=_CALLS | {"dimensions", "region"}, dimensions="dimensions"),
    "cohere": ProviderRules(parameters=_CALLS | {"dimensions"}, dimensions="dimensions", needs_credential=True),
    "gemini": ProviderRules(parameters=_CALLS | {"dimensions", "task_type"}, dimensions="dimensions", needs_credential=True),
    "vertex": ProviderRules(
        parameters=_CALLS | {"project", "location", "dimensions", "task_type"}, required_parameters=("project",), dimensions="dimensions"
    ),
    "voyage": ProviderRules(parameters=_CALLS | {"dimensions"}, dimensions="dimensions", needs_credential=True),
}

# What an organization may name by itself: everything else is a path of the server, or fetched to it.
PACKAGED_MODELS = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
TOKENIZERS = ("estimate", "cl100k_base", "o200k_base", *PACKAGED_MODELS)

# Parameters that say how a vector is computed or fetched, not which vector it is; every other one changes the embedding space.
WITHOUT_EFFECT_ON_VECTORS = frozenset(
    {"backend", "device", "timeout", "batch_texts", "batch_tokens", "tokenizer", "keep_alive"}
    | {"api_version", "project", "location", "region"}
)
