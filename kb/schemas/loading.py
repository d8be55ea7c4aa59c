"""In and out: a dict from a request, a file or a row becomes a document, and a document becomes a dict that says everything."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from config.errors import InvalidInput
from kb.schemas.base import STRICT, Document, Rules
from kb.schemas.embedding_model import EmbeddingModelInput
from kb.schemas.errors import explain
from kb.schemas.knowledge_base import KnowledgeBaseDocument
from kb.schemas.reranker import RerankerInput
from kb.schemas.upcast import upcast

T = TypeVar("T", bound=Document)


def load(document: Mapping[str, Any], *, strict: bool = True, rules: Rules = STRICT) -> KnowledgeBaseDocument:
    """A knowledge base. Strict (publish, import) refuses unknown keys and applies the installation's rules; lenient (a stored document)
    ignores what a newer or older server wrote beside the known keys. Either way InvalidInput with `errors=[{path, message}]`."""
    if not isinstance(document, Mapping):
        raise InvalidInput('A knowledge base is an object with at least a name, such as {"name": "Handbooks"}.')
    return _validate(KnowledgeBaseDocument, upcast(document), what="knowledge base", strict=strict, rules=rules)


def load_stored(document: Mapping[str, Any]) -> KnowledgeBaseDocument:
    """What a row holds: lifted to the current schema, and not held to today's rules."""
    return load(document, strict=False)


def load_embedding_model(values: Mapping[str, Any], *, rules: Rules = STRICT) -> EmbeddingModelInput:
    """A row of the registry of embedding models, as an operator writes it; always strict."""
    return _validate(EmbeddingModelInput, values, what="embedding model", strict=True, rules=rules)


def load_reranker(values: Mapping[str, Any], *, rules: Rules = STRICT) -> RerankerInput:
    """A row of the registry of rerankers; always strict."""
    return _validate(RerankerInput, values, what="reranker", strict=True, rules=rules)


def dump(document: Document) -> dict[str, Any]:
    """Every field, JSON-ready. What is stored, exported and compared."""
    return document.model_dump(mode="json", by_alias=True)


def _validate(kind: type[T], values: Mapping[str, Any], *, what: str, strict: bool, rules: Rules) -> T:
    if rules.strict != strict:
        rules = replace(rules, strict=strict)
    try:
        return kind.model_validate(values, context=rules, extra="forbid" if strict else "ignore")
    except ValidationError as error:
        errors = explain(error, values)
    first = errors[0]
    more = f" ({len(errors) - 1} more: see errors.)" if len(errors) > 1 else ""
    place = f"{first['path']}: " if first["path"] else ""
    raise InvalidInput(f"The {what} is not valid. {place}{first['message']}{more}", errors=errors)
