"""Where the vectors of a knowledge base live."""

from typing import Literal, get_args

from pydantic import Field, ValidationInfo, field_validator

from kb.schemas.base import Document, rules_of
from kb.schemas.parameters import ParameterValue, check_parameters

StoreType = Literal["pgvector", "qdrant", "chroma", "elasticsearch", "mongodb-atlas", "memory"]
STORE_TYPES: tuple[str, ...] = get_args(StoreType)

STORE_PARAMETERS: dict[str, frozenset[str]] = {
    "pgvector": frozenset(),
    "memory": frozenset(),
    "qdrant": frozenset({"host", "port", "collection_name", "api_key", "use_tls"}),
    "chroma": frozenset({"base_url", "collection_name", "tenant_name", "database_name"}),
    "elasticsearch": frozenset({"server_url", "index_name", "api_key", "user_name", "password"}),
    "mongodb-atlas": frozenset({"connection_string", "database_name", "collection_name", "index_name"}),
}


class Store(Document):
    """The vector store. Texts, words and permissions stay in Postgres whatever it is."""

    type: StoreType = Field(
        default="pgvector",
        description="`pgvector` is the application's own Postgres; `memory` is for tests and forgets everything. A type that this "
        "installation does not have is refused at publish.",
    )
    parameters: dict[str, ParameterValue] = Field(
        default_factory=dict, description="What the type takes; pgvector and memory take none. Secrets are written `${secret:NAME}`."
    )

    @field_validator("type")
    @classmethod
    def _available(cls, value: str, info: ValidationInfo) -> str:
        rules = rules_of(info)
        if rules.strict and value not in rules.known_stores:
            usable = f"Available: {', '.join(sorted(rules.known_stores))}."
            why = rules.missing_stores.get(value, "")
            raise ValueError(f"'{value}' cannot be used here. {why} {usable}" if why else f"'{value}' is not available yet. {usable}")
        return value

    @field_validator("parameters")
    @classmethod
    def _parameters(cls, value: dict[str, ParameterValue], info: ValidationInfo) -> dict[str, ParameterValue]:
        kind = info.data.get("type")
        if kind is not None and rules_of(info).strict:
            check_parameters(value, owner=f"a store of type {kind}", allowed=STORE_PARAMETERS[kind])
        return value
