"""Configuration documents as pydantic models: pure, without Django. `load` and `dump` are the way in and out."""

from kb.schemas.base import LENIENT, STRICT, Document, Rules
from kb.schemas.embedding_model import EmbeddingModelInput
from kb.schemas.errors import explain
from kb.schemas.identity import assign_source_ids, duplicate, without_source_ids
from kb.schemas.knowledge_base import KnowledgeBaseDocument
from kb.schemas.loading import dump, load, load_embedding_model, load_reranker, load_stored
from kb.schemas.reranker import RerankerInput

__all__ = [
    "LENIENT",
    "STRICT",
    "Document",
    "EmbeddingModelInput",
    "KnowledgeBaseDocument",
    "RerankerInput",
    "Rules",
    "assign_source_ids",
    "dump",
    "duplicate",
    "explain",
    "load",
    "load_embedding_model",
    "load_reranker",
    "load_stored",
    "without_source_ids",
]
