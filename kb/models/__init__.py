from kb.models import derived
from kb.models.base import MAX_KEY_LENGTH, TenantRow, file_key, key_hash
from kb.models.channels import Channel, ServiceBinding
from kb.models.datasets import Dataset, DatasetPart
from kb.models.documents import Blob, Chunk, Document, File
from kb.models.knowledge_bases import KnowledgeBase, KnowledgeBaseVersion, Source
from kb.models.rerankers import Reranker
from kb.models.space_changes import SpaceChange
from kb.models.spaces import DIMENSIONS, EmbeddingModel, EmbeddingSpace
from kb.models.spellings import LexicalWord
from kb.models.stores import StoreRemoval, StoreUse
from kb.models.tenants import ApiKey, Grant, IdempotencyKey, Membership, Organization, Role, Secret, User
from kb.models.uploads import Upload
from kb.models.usage import Usage

__all__ = [
    "DIMENSIONS",
    "MAX_KEY_LENGTH",
    "ApiKey",
    "Blob",
    "Channel",
    "Chunk",
    "Dataset",
    "DatasetPart",
    "Document",
    "EmbeddingModel",
    "EmbeddingSpace",
    "File",
    "Grant",
    "IdempotencyKey",
    "KnowledgeBase",
    "KnowledgeBaseVersion",
    "LexicalWord",
    "Membership",
    "Organization",
    "Reranker",
    "Role",
    "Secret",
    "ServiceBinding",
    "Source",
    "SpaceChange",
    "StoreRemoval",
    "StoreUse",
    "TenantRow",
    "Upload",
    "Usage",
    "User",
    "derived",
    "file_key",
    "key_hash",
]
