"""The request and the answer of each family of embedding models on Amazon Bedrock, which has no form of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from config.errors import InvalidInput
from kb.providers.base import ModelSpec, Role
from kb.providers.cohere import INPUT_TYPES

_REGIONAL = re.compile(r"(arn:.*/)?((us|eu|apac|jp|au|ca|us-gov|global)\.)?")  # of inference profiles


class Family(Protocol):
    several: bool  # whether a call takes more than one text

    def request(self, texts: Sequence[str], role: Role, dimensions: int | None) -> dict[str, Any]: ...

    def vectors(self, body: Mapping[str, Any]) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Titan:
    several: bool = False

    def request(self, texts: Sequence[str], role: Role, dimensions: int | None) -> dict[str, Any]:
        return {"inputText": texts[0], **({"dimensions": dimensions} if dimensions else {})}

    def vectors(self, body: Mapping[str, Any]) -> list[Any]:
        return [body["embedding"]]


@dataclass(frozen=True, slots=True)
class Cohere:
    several: bool = True

    def request(self, texts: Sequence[str], role: Role, dimensions: int | None) -> dict[str, Any]:
        shortened = {"output_dimension": dimensions} if dimensions else {}
        return {"texts": list(texts), "input_type": INPUT_TYPES[role], "truncate": "NONE", "embedding_types": ["float"], **shortened}

    def vectors(self, body: Mapping[str, Any]) -> list[Any]:
        found = body["embeddings"]
        return found["float"] if isinstance(found, Mapping) else found


@dataclass(frozen=True, slots=True)
class Nova:
    several: bool = False

    def request(self, texts: Sequence[str], role: Role, dimensions: int | None) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "embeddingPurpose": "GENERIC_RETRIEVAL" if role == Role.QUERY else "GENERIC_INDEX",
            "text": {"value": texts[0], "truncationMode": "NONE"},
        }
        shortened = {"embeddingDimension": dimensions} if dimensions else {}
        return {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": {**parameters, **shortened}}

    def vectors(self, body: Mapping[str, Any]) -> list[Any]:
        return [body["embeddings"][0]["embedding"]]


_FAMILIES: dict[str, Family] = {"amazon.titan-embed": Titan(), "cohere.embed": Cohere(), "amazon.nova": Nova()}


def family_of(spec: ModelSpec) -> Family:
    """By the model's id, with or without the region of an inference profile before it."""
    plain = _REGIONAL.sub("", spec.model, count=1)
    for beginning, family in _FAMILIES.items():
        if plain.startswith(beginning):
            return family
    raise InvalidInput(f"The model {spec.model!r} is of no known family on Bedrock. Known: {', '.join(f'{name}…' for name in _FAMILIES)}.")
