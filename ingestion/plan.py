"""What a run works by: the settings of the version it was started under, resolved to numbers once."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings

from ingestion.chunk.budget import resolve_budget
from ingestion.models import IngestionRun
from kb import schemas
from kb.embedding import plain_spec
from kb.models import EmbeddingSpace, KnowledgeBaseVersion, Source
from kb.providers.tokens import counter_name, token_counter_for
from kb.schemas import fingerprints
from kb.schemas.policy import Policy
from kb.schemas.source import SourceSettings
from kb.schemas.web import Web

SPEECH_OVERLAP = 0.15  # of a chunk
RESERVE_TOKENS = 32  # of the model's window, for the line of title and headings


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of one source under one version, ready for the stages."""

    settings: SourceSettings
    policy: Policy
    web: Web | None
    language: str
    extract: Mapping[str, Any]
    chunk: Mapping[str, Any]
    speech: Mapping[str, Any]
    """How a transcript is cut: by lines of speech, whatever else is cut by."""
    fingerprints: Mapping[str, str]
    warnings: tuple[str, ...]

    @property
    def ocr(self) -> str:
        """`auto`, where neither the source nor the policy of a file says `off`."""
        return "off" if "off" in (self.settings.ocr, self.policy.ocr) else "auto"


def plan_for(run: IngestionRun, policy: Mapping[str, Any] | None = None) -> Plan:
    """The plan of a run; of one file of it with `policy`, as the item keeps it. Settings of internal sources are the defaults."""
    model = run.space.embedding_model
    # What may change of a model under the same space.
    changeable = (model.max_input_tokens, model.parameters.get("tokenizer"))
    return _plan(run.version_id, run.source_id, run.space_id, changeable, json.dumps(policy, sort_keys=True) if policy else "")


@lru_cache(maxsize=256)
def _plan(version_id: UUID, source_id: UUID, space_id: int, changeable: tuple[object, ...], policy_text: str) -> Plan:
    # Versions and spaces never change, so a plan may be kept for as long as the process lives.
    document = schemas.load_stored(KnowledgeBaseVersion.objects.get(id=version_id).document)
    source = Source.objects.get(id=source_id)
    entry = next((entry for entry in document.sources if UUID(entry.id) == source.id), None)
    limits = entry.settings if entry else SourceSettings()
    if policy_text:
        stored = json.loads(policy_text)
        policy = Policy.of(stored["values"], family=stored["family"])
        limits = limits.model_copy(update={"max_content_length": policy.max_content_length})
    else:
        policy = Policy(mode=limits.tables, max_content_length=limits.max_content_length, chunking=document.chunking)
    space = EmbeddingSpace.objects.select_related("embedding_model").get(id=space_id)
    spec = plain_spec(space.embedding_model)
    chunking = policy.chunking
    tokenizer = counter_name(spec) if chunking.tokenizer == "model" else chunking.tokenizer
    counter = token_counter_for(tokenizer)
    budget = resolve_budget(
        target=chunking.target_tokens,
        overlap=chunking.overlap,
        max_input_tokens=spec.max_input_tokens,
        special_tokens=counter.special,
        prefix_tokens=counter.count(spec.document_prefix) if spec.document_prefix else 0,
        reserve=RESERVE_TOKENS,
    )
    cut = {
        "strategy": chunking.strategy,
        "target_tokens": budget.target_tokens,
        "overlap_tokens": budget.overlap_tokens,
        "min_chars": chunking.min_chars,
    }
    chunk = {"settings": cut, "tokenizer": tokenizer, "reserve": RESERVE_TOKENS}
    extract = {
        "max_chars": limits.max_content_length,
        "max_memory_mb": settings.ENV.extract_memory_mb,
        "comments": limits.comments,
    }
    return Plan(
        settings=limits,
        policy=policy,
        web=entry.web if entry else None,
        language=document.language,
        extract=extract,
        chunk=chunk,
        speech=chunk | {"settings": _for_speech(cut)},
        fingerprints={
            "extract": fingerprints.extract_fingerprint(limits, policy),
            "chunk": fingerprints.chunk_fingerprint(**cut, tokenizer=chunking.tokenizer if chunking.tokenizer != "model" else spec.model),
            "context": fingerprints.context_fingerprint(
                language=document.language, document_prefix=spec.document_prefix, reserve_tokens=RESERVE_TOKENS
            ),
        },
        warnings=(budget.warning,) if budget.warning else (),
    )


def _for_speech(cut: Mapping[str, Any]) -> dict[str, Any]:
    """By turns and times, with the overlap that speech needs: nobody speaks in paragraphs."""
    overlap = max(cut["overlap_tokens"], int(SPEECH_OVERLAP * cut["target_tokens"]))
    return {**cut, "strategy": "transcript", "overlap_tokens": overlap}
