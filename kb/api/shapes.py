"""What this API takes and answers, beside the configuration documents themselves."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from rest_framework.response import Response

from config.paging import Page
from kb.schemas import EmbeddingModelInput, KnowledgeBaseDocument, RerankerInput


class Shape(BaseModel):
    """Read from rows and dataclasses by attribute, so a field is what the row calls it."""

    model_config = ConfigDict(from_attributes=True, use_attribute_docstrings=True)


def answer(shape: BaseModel, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(shape.model_dump(mode="json"), status=status, headers=headers)


def answer_page(page: Page, shape: type[Shape]) -> Response:
    items = [shape.model_validate(item).model_dump(mode="json") for item in page.items]
    return Response({"items": items, "next_cursor": page.next_cursor})


class Descriptor(Shape):
    """A knowledge base in a list."""

    id: UUID
    name: str
    description: str
    version: int
    visibility: Literal["private", "organization"]
    web_sources: int
    upload_sources: int
    created_at: datetime


class VersionDescriptor(Shape):
    number: int
    comment: str
    author_name: str
    created_at: datetime
    is_current: bool


class Version(VersionDescriptor):
    document: KnowledgeBaseDocument


class RemovedSource(Shape):
    """A source that a publication dropped or gave another type, and what goes with it."""

    id: UUID
    name: str
    documents: int
    chunks: int
    files: int


class ModelFacts(Shape):
    """What gives vectors, and which."""

    name: str
    provider: str
    model: str
    dimension: int


class SpaceCoverage(Shape):
    """Vectors of one embedding space, of the `chunks` that answer."""

    space: int
    model: ModelFacts
    use: Literal["answers", "filling", "grace", "left"]
    """`grace`: kept for the way back; `left`: about to be removed."""
    vectors: int
    chunks: int


class OutdatedDocuments(Shape):
    documents: int
    """Documents that were cut under other settings than those of now, and answer as they are until they are cut anew."""
    of: int
    """Documents that answer."""


class EmbeddingChange(Shape):
    """The newest change of the embedding model, or renewal of vectors."""

    id: UUID
    state: Literal["filling", "switching", "grace", "done", "failed", "cancelled", "superseded", "rolled_back"]
    from_model: str
    to_model: str
    requested_by: str
    chunks: int
    missing: int
    """Chunks that have no vector of the new model yet."""
    filled: int
    computed: int
    """Texts that were paid; vectors of the others were known."""
    too_long: int
    """Chunks of which the new model reads the beginning alone, until their documents are cut anew."""
    per_second: float
    eta_seconds: int | None
    error: str
    """Why it waits, or failed."""
    reason: str
    started_at: datetime
    switched_at: datetime | None
    grace_until: datetime | None
    """Until then the vectors of the model before stay."""
    finished_at: datetime | None
    can_roll_back: bool


class EmbeddingsAnswer(Shape):
    """`stale`: what answers is not what the current version asks for; `reason` says why, and what to do."""

    stale: bool
    reason: str
    model: ModelFacts
    """That the current version names."""
    answering: ModelFacts
    """By which searches are answered."""
    chunks: int
    missing: int
    """Chunks without a vector of the model that answers: found by their words alone."""
    coverage: list[SpaceCoverage]
    outdated: OutdatedDocuments
    change: EmbeddingChange | None


class KnowledgeBaseAnswer(Shape):
    """A knowledge base with its current version; its ETag is the version's number."""

    id: UUID
    name: str
    version: int
    comment: str
    author_name: str
    published_at: datetime
    document: KnowledgeBaseDocument
    embeddings: EmbeddingsAnswer
    removed_sources: list[RemovedSource] = []
    """What the publication that is answered took away; it answers no search any more, and is cleared in batches."""


class DiffChange(Shape):
    path: str
    kind: Literal["added", "removed", "changed"]
    old: Any = None
    new: Any = None


class Diff(Shape):
    from_version: int
    to_version: int
    changes: list[DiffChange]
    text: str
    """One line per change; empty if nothing changed."""


class RollbackInput(Shape):
    to: int = Field(ge=1, le=999_999_999)
    comment: str = Field(default="", max_length=1000)


class DuplicateInput(Shape):
    name: str = Field(min_length=1, max_length=200)
    version: int | None = Field(default=None, ge=1, le=999_999_999, description="Which version to copy; the current one without.")


class Person(Shape):
    id: int
    username: str


class GrantAnswer(Shape):
    user: Person
    level: Literal["viewer", "editor"]
    created_at: datetime


class GrantInput(Shape):
    level: Literal["viewer", "editor"]


class EmbeddingModelAnswer(EmbeddingModelInput):
    """A registered model. `scope` says who registered it, `is_ready` whether vectors can be stored yet."""

    id: UUID
    scope: Literal["organization", "installation"]
    is_ready: bool


class ProbeAnswer(Shape):
    dimension: int
    tokens: int
    milliseconds: float
    similarity: float
    """Cosine of two sentences that mean nearly the same."""


class RerankerAnswer(RerankerInput):
    """A registered reranker. `scope` says who registered it."""

    id: UUID
    scope: Literal["organization", "installation"]


class RerankerProbeAnswer(Shape):
    relevant: float
    """Of a passage that answers the question."""
    irrelevant: float
    """Of one that does not."""
    milliseconds: float


class SecretAnswer(Shape):
    """A stored secret; its value is never answered."""

    id: UUID
    name: str
    created_at: datetime
    updated_at: datetime


class SecretInput(Shape):
    name: str = Field(min_length=1, max_length=100)
    value: str = Field(min_length=1, max_length=65_536, repr=False)


class ApiKeyAnswer(Shape):
    id: UUID
    name: str
    prefix: str
    role: Literal["viewer", "editor", "admin"]
    knowledge_base_ids: list[UUID]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class NewApiKey(ApiKeyAnswer):
    value: str
    """Shown this once and kept nowhere."""


class ApiKeyInput(Shape):
    name: str = Field(min_length=1, max_length=200)
    role: Literal["viewer", "editor", "admin"] = "viewer"
    knowledge_base_ids: list[UUID] = Field(default_factory=list, max_length=1000, description="Empty: every one that the role may see.")
    expires_at: datetime | None = Field(default=None, description="With its time zone; none: until it is revoked.")


class OrganizationAnswer(Shape):
    id: UUID
    name: str
    role: Literal["viewer", "editor", "admin"]
    """Yours, or your key's."""


class MemberAnswer(Shape):
    user: Person
    role: Literal["viewer", "editor", "admin"]
    created_at: datetime


class MemberInput(Shape):
    role: Literal["viewer", "editor", "admin"]
