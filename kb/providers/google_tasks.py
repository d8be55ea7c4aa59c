"""How Google's embedding models are told what a text is: by a field, and gemini-embedding-2 by words before the text."""

from __future__ import annotations

from config.errors import InvalidInput
from kb.providers.base import ModelSpec, Role

_ROLES = {Role.DOCUMENT: "RETRIEVAL_DOCUMENT", Role.QUERY: "RETRIEVAL_QUERY"}
_OTHERS = frozenset(
    {"SEMANTIC_SIMILARITY", "CLASSIFICATION", "CLUSTERING", "QUESTION_ANSWERING", "FACT_VERIFICATION", "CODE_RETRIEVAL_QUERY"}
)


def check_task(spec: ModelSpec) -> None:
    task = spec.parameters.get("task_type")
    if task is None:
        return
    if _by_words(spec):
        raise InvalidInput(f"The model {spec.model} takes no task type. Remove parameters.task_type from the model {spec.name}.")
    known = sorted({*_ROLES.values(), *_OTHERS})
    if task not in known:
        raise InvalidInput(f"The parameter task_type of the model {spec.name} is {task!r}. Known: {', '.join(known)}.")


def task_type(spec: ModelSpec, role: Role) -> str | None:
    """The field's value, None where the model has no such field. A task that is not about retrieval, if registered, holds for documents
    and questions alike; RETRIEVAL_DOCUMENT and RETRIEVAL_QUERY only say what the role says better."""
    if _by_words(spec):
        return None
    pinned = spec.parameters.get("task_type")
    return pinned if pinned in _OTHERS else _ROLES[role]


def prompted(spec: ModelSpec, text: str, role: Role) -> str:
    if not _by_words(spec):
        return text
    return f"title: none | text: {text}" if role == Role.DOCUMENT else f"task: search result | query: {text}"


def _by_words(spec: ModelSpec) -> bool:
    return "gemini-embedding-2" in spec.model
