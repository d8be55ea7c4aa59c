"""What all providers that call a server take alike: time limit, sizes of batches, a shorter dimension."""

from __future__ import annotations

from config.errors import InvalidInput
from kb.providers.base import BatchLimits, ModelSpec, check_settings
from kb.schemas.providers import PROVIDERS

_DEFAULT_TIMEOUT = 60
_LONGEST_TIMEOUT = 600  # a server that never answers holds a worker that others need too
# A number of a vector takes about 22 bytes of JSON; a model of another dimension shall still be told so.
_LEAST_ROOM = 32 * 1024 * 1024
_BYTES_PER_NUMBER = 32
_MOST_ROOM = 256 * 1024 * 1024


def check_remote(spec: ModelSpec) -> None:
    """Refuse parameters that the provider does not take or whose value is none, without calling anybody."""
    check_settings(spec, parameters=PROVIDERS[spec.provider].parameters, remote=True)
    for name in ("batch_texts", "batch_tokens", "dimensions", "timeout"):
        value = spec.parameters.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int | float if name == "timeout" else int) or value <= 0:
            raise InvalidInput(f"The parameter {name} of the model {spec.name} is {value!r}. Give a number above 0.")
    if spec.parameters.get("timeout", 1) > _LONGEST_TIMEOUT:
        raise InvalidInput(f"The parameter timeout of the model {spec.name} is above {_LONGEST_TIMEOUT} seconds. Give a smaller number.")
    dimensions = spec.parameters.get("dimensions", spec.dimension)
    if dimensions != spec.dimension:
        raise InvalidInput(f"The model {spec.name} has dimension {spec.dimension} and parameters.dimensions {dimensions}. Make them equal.")
    if spec.endpoint and not spec.endpoint.lower().startswith(("http://", "https://")):
        raise InvalidInput(f"The endpoint of the model {spec.name} is no http or https address. Give one like https://example.com/v1.")


def timeout_of(spec: ModelSpec) -> float:
    return float(spec.parameters.get("timeout", _DEFAULT_TIMEOUT))


def limits_of(spec: ModelSpec, defaults: BatchLimits) -> BatchLimits:
    """What one call takes: what the model's parameters say, else what the vendor documents."""
    return BatchLimits(
        max_texts=spec.parameters.get("batch_texts", defaults.max_texts),
        max_tokens=spec.parameters.get("batch_tokens", defaults.max_tokens),
    )


def room_for(spec: ModelSpec, limits: BatchLimits) -> int:
    """Bytes that an answer may have."""
    return min(_MOST_ROOM, max(_LEAST_ROOM, limits.max_texts * spec.dimension * _BYTES_PER_NUMBER))


def sendable(text: str) -> str:
    """A lone surrogate cannot be sent, and an empty text is refused by many servers."""
    return text.encode("utf-8", "replace").decode("utf-8") or " "
