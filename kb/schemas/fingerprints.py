"""Fingerprints of settings: a stage runs again for an unchanged document only if its own fingerprint changed.

They are made of settings, never of code versions (an extractor's version is stored beside the document). A value that is left at its
default and one that is written out equal to it are the same; a change of this module's inputs makes every document be done again.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from kb.schemas.policy import Policy
from kb.schemas.providers import WITHOUT_EFFECT_ON_VECTORS
from kb.schemas.source import SourceSettings

DEFAULT_POLICY = Policy()
# Keys of a policy that decide what is read; where it is cut, and for how long it is kept, does not.
READING = ("mode", "ocr", "transcribe", "vision", "table")


def fingerprint(settings: Mapping[str, Any], *, stage: str = "") -> str:
    """32 hex characters of the canonical JSON: keys sorted, 1.0 equal to 1; `stage` keeps equal settings of two stages apart."""
    text = json.dumps([stage, _plain(settings)], sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def extract_fingerprint(settings: SourceSettings, policy: Policy = DEFAULT_POLICY) -> str:
    """What changes the Markdown that a document becomes: of a policy what differs from the default, so that a new key changes nothing."""
    said = {name: value for name in READING if (value := getattr(policy, name)) != getattr(DEFAULT_POLICY, name)}
    plain = {name: value.model_dump(mode="json") if isinstance(value, BaseModel) else value for name, value in said.items()}
    if settings.comments:
        plain["settings_comments"] = True
    if settings.ocr != "auto":
        plain["settings_ocr"] = settings.ocr
    return fingerprint({"max_content_length": settings.max_content_length, **plain}, stage="extract")


def chunk_fingerprint(*, strategy: str, target_tokens: int, overlap_tokens: int, min_chars: int, tokenizer: str) -> str:
    """What changes where text is cut: the sizes as resolved for the model, and what counts them, because the same target means other cuts
    under another tokenizer."""
    settings = {
        "strategy": strategy,
        "target_tokens": target_tokens,
        "overlap_tokens": overlap_tokens,
        "min_chars": min_chars,
        "tokenizer": tokenizer,
    }
    return fingerprint(settings, stage="chunk")


def context_fingerprint(*, language: str, document_prefix: str = "", reserve_tokens: int = 32) -> str:
    """What is put around a chunk before it is embedded, and in which language its words are indexed."""
    return fingerprint({"language": language, "document_prefix": document_prefix, "reserve_tokens": reserve_tokens}, stage="context")


def embed_fingerprint(
    *,
    provider: str,
    model: str,
    dimension: int,
    query_prefix: str = "",
    document_prefix: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> str:
    """What changes vectors. Time-outs, batch sizes, devices and endpoints do not: behind another address it is the same model."""
    kept = {key: value for key, value in (parameters or {}).items() if key not in WITHOUT_EFFECT_ON_VECTORS and value is not None}
    settings = {
        "provider": provider,
        "model": model,
        "dimension": dimension,
        "query_prefix": query_prefix,
        "document_prefix": document_prefix,
        "parameters": kept,
    }
    return fingerprint(settings, stage="embed")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
