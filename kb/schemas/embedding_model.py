"""A row of the registry of embedding models, as an operator writes it."""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from kb.schemas.base import BIGGEST_INTEGER, Document, Name, Text, refuse_reference, refuse_unstorable, rules_of
from kb.schemas.parameters import ParameterValue
from kb.schemas.providers import PACKAGED_MODELS, PROVIDERS, TOKENIZERS, ProviderRules
from kb.schemas.remote import check_credential, check_endpoint, check_known, name_of_reference

DIMENSIONS = (256, 384, 512, 768, 1024, 1536, 3072)


class EmbeddingModelInput(Document):
    """What turns text into vectors. Registering it makes its embedding space."""

    name: Annotated[Name, Field(max_length=100)] = Field(description="1–100 characters; what knowledge bases call it.")
    provider: Text = Field(description="Who computes: a registered one, such as `local` (in process, no network) or `openai` (compatible).")
    model: Text = Field(min_length=1, max_length=300, description="The provider's name of the model.")
    dimension: int = Field(
        description="Length of a vector: 256, 384, 512, 768, 1024, 1536 or 3072; checked against what the provider returns.",
        json_schema_extra={"enum": list(DIMENSIONS)},
    )
    max_input_tokens: int = Field(ge=8, le=BIGGEST_INTEGER, description="Tokens that the model reads of one text, special tokens included.")
    endpoint: Text | None = Field(
        default=None, max_length=2000, description="http(s) address of the service, where the provider takes one. Without it, the vendor's."
    )
    credential: Text | None = Field(default=None, description="Name of a secret that holds the key; never the key itself.")
    parameters: dict[str, ParameterValue] = Field(
        default_factory=dict, description="What the provider takes besides; a key that it would ignore is refused."
    )
    query_prefix: str = Field(default="", max_length=500, description="Put before a question, for models that want it.")
    document_prefix: str = Field(default="", max_length=500, description="Put before a document's chunk, for models that want it.")
    is_default: bool = Field(default=False, description="Used where a knowledge base names none; at most one per organization.")
    vector_index: Literal["halfvec", "binary"] = Field(
        default="halfvec",
        description="Of what the index of a large space is made: `halfvec` of the vectors; `binary` of their signs, which takes a tenth of "
        "the memory and then compares the vectors of some hundred candidates. May change at any time: a worker builds the other one.",
    )
    price_per_million_tokens: float | None = Field(
        default=None, ge=0, description="To report and estimate cost, and for `budget.monthly_cost`."
    )

    @field_validator("provider")
    @classmethod
    def _provider(cls, value: str, info: ValidationInfo) -> str:
        known = rules_of(info).known_providers
        if value in known:
            return value
        fate = "is not available yet in this version" if value in PROVIDERS else "is not known"
        raise ValueError(f"'{value[:100]}' {fate}. Available: {', '.join(sorted(known))}.")

    @field_validator("model")
    @classmethod
    def _model(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("provider") == "local" and value not in PACKAGED_MODELS and not rules_of(info).trusted:
            raise ValueError(
                f"is not {PACKAGED_MODELS[0]}. Any other local model is a folder of the server or fetched to it: an operator registers it."
            )
        return value

    @field_validator("dimension")
    @classmethod
    def _dimension(cls, value: int, info: ValidationInfo) -> int:
        if value in DIMENSIONS:
            return value
        parameter = _rules(info).dimensions
        advice = (
            f"{info.data.get('provider')} can shorten vectors: set parameters.{parameter} to one of them."
            if parameter
            else "Choose a model with one of them, or a provider with a `dimensions` parameter, which shortens vectors."
        )
        raise ValueError(f"is {value}, but vectors are kept in tables of {', '.join(map(str, DIMENSIONS))}. {advice}")

    @field_validator("endpoint")
    @classmethod
    def _endpoint(cls, value: str | None, info: ValidationInfo) -> str | None:
        return check_endpoint(value, provider=info.data.get("provider"), taken=_rules(info), rules=rules_of(info))

    @field_validator("credential")
    @classmethod
    def _credential(cls, value: str | None, info: ValidationInfo) -> str | None:
        return check_credential(value, provider=info.data.get("provider"), taken=_rules(info), endpoint=info.data.get("endpoint"))

    @field_validator("parameters")
    @classmethod
    def _parameters(cls, value: dict[str, ParameterValue], info: ValidationInfo) -> dict[str, ParameterValue]:
        provider = info.data.get("provider")
        if provider is None:
            return value
        rules = _rules(info)
        check_known(value, provider=provider, taken=rules)
        tokenizer = value.get("tokenizer")
        if tokenizer is not None and tokenizer not in TOKENIZERS and not rules_of(info).trusted:
            known = ", ".join(TOKENIZERS)
            raise ValueError(f"names the tokenizer '{str(tokenizer)[:100]}', which only an operator may. Known: {known}.")
        for key in rules.required_parameters:
            if value.get(key) in (None, ""):
                raise ValueError(f"must hold '{key}': provider {provider} cannot work without it.")
        shortened, dimension = value.get(rules.dimensions or ""), info.data.get("dimension")
        if shortened is not None and dimension is not None and shortened != dimension:
            raise ValueError(f"sets {rules.dimensions} to {shortened}, but dimension is {dimension}. Make them equal.")
        return value

    @field_validator("query_prefix", "document_prefix")
    @classmethod
    def _prefix(cls, value: str) -> str:
        return refuse_reference(refuse_unstorable(value))  # not stripped: "query: " means its space

    @model_validator(mode="before")
    @classmethod
    def _name_of_reference(cls, data: Any) -> Any:
        return name_of_reference(data)


def _rules(info: ValidationInfo) -> ProviderRules:
    return PROVIDERS.get(info.data.get("provider", ""), ProviderRules())
