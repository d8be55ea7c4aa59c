"""Where the vectors of a knowledge base live."""

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import Field, ValidationInfo, field_validator

from kb.schemas.addresses import check_url
from kb.schemas.base import Document, Rules, rules_of
from kb.schemas.parameters import ParameterValue, check_parameters

StoreType = Literal["pgvector", "qdrant", "chroma", "elasticsearch", "mongodb-atlas", "memory"]
STORE_TYPES: tuple[str, ...] = get_args(StoreType)

STORE_PARAMETERS: dict[str, frozenset[str]] = {
    "pgvector": frozenset(),
    "memory": frozenset(),
    "qdrant": frozenset({"host", "port", "collection_name", "api_key", "use_tls"}),
    "chroma": frozenset({"base_url", "collection_name", "tenant_name", "database_name", "api_key"}),
    "elasticsearch": frozenset({"server_url", "index_name", "api_key", "user_name", "password"}),
    "mongodb-atlas": frozenset({"connection_string", "database_name", "collection_name", "index_name"}),
}
# Without these nothing can be reached.
_NEEDED = {"qdrant": "host", "chroma": "base_url", "elasticsearch": "server_url", "mongodb-atlas": "connection_string"}
# They say how to get in, not where the points are: they may change while a knowledge base has contents.
ACCESS_PARAMETERS = frozenset({"api_key", "user_name", "password", "use_tls"})
_ADDRESSES = ("base_url", "server_url")
_NAMES = ("collection_name", "index_name", "tenant_name", "database_name")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Store(Document):
    """The vector store. Texts, words and permissions stay in Postgres whatever it is."""

    type: StoreType = Field(
        default="pgvector",
        description="`pgvector` is the application's own Postgres; `memory` is for tests and forgets everything. A type that this "
        "installation does not have is refused at publish, and so is another store for a knowledge base that holds something.",
    )
    parameters: dict[str, ParameterValue] = Field(
        default_factory=dict,
        description="What the type takes ([stores](stores.md)); pgvector and memory take none. Secrets are written `${secret:NAME}`.",
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
        rules = rules_of(info)
        if kind is not None and rules.strict:
            check_parameters(value, owner=f"a store of type {kind}", allowed=STORE_PARAMETERS[kind])
            needed = _NEEDED.get(kind)
            if needed and not value.get(needed):
                raise ValueError(f"a store of type {kind} needs '{needed}'.")
            _check_forms(value, rules)
        return value

    @property
    def identity(self) -> dict[str, Any]:
        """What says where the points are: stores of equal identity hold the same ones."""
        return {"type": self.type, **{key: value for key, value in self.parameters.items() if key not in ACCESS_PARAMETERS}}


def _check_forms(parameters: Mapping[str, Any], rules: Rules) -> None:
    for key in _ADDRESSES:
        if key in parameters:
            _checked_address(key, str(parameters[key]), rules)
    if "host" in parameters:
        port = parameters.get("port") or 6333
        if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
            _refuse("port", "must be a number from 1 to 65535.")
        host = str(parameters["host"])
        if re.search(r"[/@?#]", host):
            _refuse("host", "must be a name or an address alone, without http:// and a path.")
        _checked_address("host", f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", rules)
    if not isinstance(parameters.get("use_tls", False), bool):
        _refuse("use_tls", "must be true or false.")
    for key in _NAMES:
        if key in parameters and not _NAME.fullmatch(str(parameters[key])):
            _refuse(key, "must be 1 to 100 letters, digits, '.', '_' and '-', a letter or digit first.")


def _checked_address(key: str, address: str, rules: Rules) -> None:
    try:
        check_url(address, rules=rules)
    except ValueError as error:
        _refuse(key, str(error))
    if re.search(r"[?#]", address):
        _refuse(key, "must be an address without a query.")


def _refuse(key: str, why: str) -> None:
    raise ValueError(f"'{key}' {why}")
