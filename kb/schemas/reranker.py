"""A row of the registry of rerankers, as an administrator or an operator writes it."""

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from kb.schemas.base import Document, Name, Text, rules_of
from kb.schemas.parameters import ParameterValue
from kb.schemas.providers import ProviderRules
from kb.schemas.remote import check_credential, check_endpoint, check_known, name_of_reference

RERANKERS: dict[str, ProviderRules] = {
    "cross-encoder": ProviderRules(parameters=frozenset({"device", "max_length"}), takes_endpoint=False, takes_credential=False),
    "cohere": ProviderRules(parameters=frozenset({"max_documents", "scores", "max_tokens_per_doc"}), needs_credential=True),
    "voyage": ProviderRules(parameters=frozenset({"max_documents", "scores", "truncation"}), needs_credential=True),
    "jina": ProviderRules(parameters=frozenset({"max_documents", "scores"}), needs_credential=True),
}
SCORES = ("probabilities", "logits")
_COUNTS = {"max_documents": 1000, "max_tokens_per_doc": 1_000_000, "max_length": 1_000_000}


class RerankerInput(Document):
    """What reads the question beside each candidate and says how probably it answers. Knowledge bases and requests call it by its name."""

    name: Annotated[Name, Field(max_length=100)] = Field(description="1–100 characters; what knowledge bases and requests call it.")
    provider: Text = Field(
        description="`cross-encoder` (sentence-transformers, in process), or the dialect of a rerank service: `cohere`, `voyage`, `jina`.",
        json_schema_extra={"enum": list(RERANKERS)},
    )
    model: Text = Field(min_length=1, max_length=300, description="The provider's name of the model; a folder or name for `cross-encoder`.")
    endpoint: Text | None = Field(
        default=None, max_length=2000, description="http(s) address that `/rerank` is put after. Without it, the vendor's."
    )
    credential: Text | None = Field(default=None, description="Name of a secret that holds the key; never the key itself.")
    parameters: dict[str, ParameterValue] = Field(
        default_factory=dict,
        description="`max_documents` of one request; `scores`: `probabilities`, or `logits`, which become probabilities; what else the "
        "provider takes.",
    )
    timeout: float = Field(default=2.0, ge=0.05, le=30, description="Seconds after which a search goes on without it.")

    @field_validator("provider")
    @classmethod
    def _provider(cls, value: str, info: ValidationInfo) -> str:
        if value not in RERANKERS:
            raise ValueError(f"'{value[:100]}' is not known. Available: {', '.join(RERANKERS)}.")
        if value == "cross-encoder" and not rules_of(info).trusted:
            raise ValueError("'cross-encoder' names a model of the server, or one fetched to it: an operator registers it.")
        return value

    @field_validator("endpoint")
    @classmethod
    def _endpoint(cls, value: str | None, info: ValidationInfo) -> str | None:
        return check_endpoint(value, provider=info.data.get("provider"), taken=_taken(info), rules=rules_of(info))

    @field_validator("credential")
    @classmethod
    def _credential(cls, value: str | None, info: ValidationInfo) -> str | None:
        return check_credential(value, provider=info.data.get("provider"), taken=_taken(info), endpoint=info.data.get("endpoint"))

    @field_validator("parameters")
    @classmethod
    def _parameters(cls, value: dict[str, ParameterValue], info: ValidationInfo) -> dict[str, ParameterValue]:
        provider = info.data.get("provider")
        if provider is None:
            return value
        check_known(value, provider=provider, taken=_taken(info))
        for name, most in _COUNTS.items():
            count = value.get(name, 1)
            if type(count) is not int or not 1 <= count <= most:
                raise ValueError(f"sets {name} to {str(count)[:40]}. Give a whole number from 1 to {most:,}.")
        if value.get("scores", SCORES[0]) not in SCORES:
            raise ValueError(f"sets scores to {str(value['scores'])[:40]}. Choose one of: {', '.join(SCORES)}.")
        if type(value.get("truncation", True)) is not bool:
            raise ValueError("sets truncation to something else than true or false.")
        if "device" in value and not isinstance(value["device"], str):
            raise ValueError("must name the device as text, such as cpu or cuda:0.")
        return value

    @model_validator(mode="before")
    @classmethod
    def _name_of_reference(cls, data: Any) -> Any:
        return name_of_reference(data)


def _taken(info: ValidationInfo) -> ProviderRules:
    return RERANKERS.get(info.data.get("provider", ""), ProviderRules())
