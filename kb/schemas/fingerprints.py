"""Fingerprints of settings: a stage runs again for an unchanged document only if its own fingerprint changed.

They are made of settings, never of code versions (an extractor's version is stored beside the document). A value that is left at its
default and one that is written out equal to it are the same; a change of this module's inputs makes every document be done again.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kb.schemas.chunking import ChunkBudget, Chunking
from kb.schemas.providers import WITHOUT_EFFECT_ON_VECTORS
from kb.schemas.source import SourceSettings


def fingerprint(stage: str, settings: Mapping[str, Any]) -> str:
    """32 hex characters of the canonical JSON: keys sorted, 1.0 equal to 1."""
    text = json.dumps([stage, _plain(settings)], sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def extract_fingerprint(settings: SourceSettings) -> str:
    """What changes the Markdown that a document becomes."""
    return fingerprint("extract", {"max_content_length": settings.max_content_length})


def chunk_fingerprint(chunking: Chunking, *, budget: ChunkBudget, tokenizer: str) -> str:
    """What changes where text is cut. `tokenizer` identifies what counts (`provider/model` where it is the model's own), because the same
    target means other cuts under another tokenizer."""
    return fingerprint(
        "chunk",
        {
            "strategy": chunking.strategy,
            "target_tokens": budget.target_tokens,
            "overlap_tokens": budget.overlap_tokens,
            "min_chars": chunking.min_chars,
            "tokenizer": tokenizer if chunking.tokenizer == "model" else chunking.tokenizer,
        },
    )


def context_fingerprint(*, language: str, title: bool = True, heading_path: bool = True) -> str:
    """What is put around a chunk before it is embedded, and in which language its words are indexed."""
    return fingerprint("context", {"language": language, "title": title, "heading_path": heading_path})


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
    return fingerprint(
        "embed",
        {
            "provider": provider,
            "model": model,
            "dimension": dimension,
            "query_prefix": query_prefix,
            "document_prefix": document_prefix,
            "parameters": kept,
        },
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
