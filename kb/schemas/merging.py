"""Layers of an ingest policy made one, with the layer that each key came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from config.errors import InvalidInput
from kb.schemas.base import LENIENT, STRICT, Rules
from kb.schemas.chunking import TRANSCRIPT, Chunking
from kb.schemas.errors import explain
from kb.schemas.families import FAMILIES
from kb.schemas.policy import Policy, PolicyDocument

DEFAULT, FAMILY, KNOWLEDGE_BASE, CHANNEL, UPLOAD = "default", "family", "knowledge_base", "channel", "upload"


@dataclass(frozen=True, slots=True)
class Merged:
    """`values` is the whole document, `origins` maps each path of it (`chunking.overlap`) to the name of its layer."""

    values: dict[str, Any]
    origins: dict[str, str]
    family: str

    @property
    def policy(self) -> Policy:
        return Policy.of(self.values, family=self.family)


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    values: Mapping[str, Any] = field(default_factory=dict)


def load_policy(document: Any, *, rules: Rules = STRICT, path: str = "") -> dict[str, Any]:
    """What a channel or an upload may say, as it was said: nothing is filled in. `InvalidInput` names every place below `path`."""
    if not isinstance(document, Mapping):
        raise _invalid([{"path": path, "message": "must be an object."}])
    try:
        known = PolicyDocument.model_validate(document, context=rules)
    except ValidationError as error:
        raise _invalid([{**fault, "path": _below(path, fault["path"])} for fault in explain(error, document)]) from None
    return known.model_dump(mode="json", exclude_unset=True)


def merge_policy(*, family: str, chunking: Chunking, channel: Mapping[str, Any], upload: Mapping[str, Any]) -> Merged:
    """The policy of a file. `chunking` is the knowledge base's, of which counts what differs from the default: its document says
    everything, so nothing else tells what was meant. Raises `InvalidInput` where layers do not fit together."""
    layers = [
        Layer(DEFAULT, _defaults()),
        Layer(FAMILY, FAMILIES[family].defaults),
        Layer(KNOWLEDGE_BASE, {"chunking": _said(chunking)}),
        Layer(CHANNEL, channel),
        Layer(UPLOAD, upload),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        _lay(values, origins, _with_transcript(layer.values), layer.name, "")
    try:
        Chunking.model_validate(values["chunking"], context=LENIENT)
    except ValidationError as error:
        faults = [{**fault, "path": _below("chunking", fault["path"])} for fault in explain(error, values["chunking"])]
        raise _invalid(faults, what="The policy of the upload, its channel and its knowledge base do not fit together") from None
    return Merged(values, origins, family)


def _defaults() -> dict[str, Any]:
    return PolicyDocument().model_dump(mode="json")


def _said(chunking: Chunking) -> dict[str, Any]:
    default = Chunking().model_dump(mode="json")
    return {key: value for key, value in chunking.model_dump(mode="json").items() if value != default[key]}


def _with_transcript(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A layer that chooses the strategy of transcripts means their sizes too, unless it says others."""
    chunking = values.get("chunking", {})
    return {**values, "chunking": {**TRANSCRIPT, **chunking}} if chunking.get("strategy") == "transcript" else values


def _lay(values: dict[str, Any], origins: dict[str, str], layer: Mapping[str, Any], name: str, path: str) -> None:
    for key, value in layer.items():
        where = _below(path, key)
        if isinstance(value, Mapping):
            _lay(values.setdefault(key, {}), origins, value, name, where)
        else:
            values[key], origins[where] = value, name


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path and key else path or key


def _invalid(faults: Sequence[dict[str, str]], *, what: str = "The ingest policy is not valid") -> InvalidInput:
    first = faults[0]
    more = f" ({len(faults) - 1} more: see errors.)" if len(faults) > 1 else ""
    place = f"{first['path']}: " if first["path"] else ""
    return InvalidInput(f"{what}. {place}{first['message']}{more}", errors=list(faults))
