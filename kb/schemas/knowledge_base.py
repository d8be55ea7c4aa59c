"""The knowledge base document: one description for API, admin, YAML and workers."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from kb.schemas.base import Document, Name, Text, fold
from kb.schemas.budget import Budget
from kb.schemas.chunking import Chunking
from kb.schemas.languages import check_language
from kb.schemas.metadata import Key, MetadataField
from kb.schemas.retrieval_settings import RetrievalSettings
from kb.schemas.source import Source
from kb.schemas.store import Store
from kb.schemas.upcast import CURRENT


class KnowledgeBaseDocument(Document):
    """A knowledge base as it is written, published and read by workers."""

    schema_number: Literal[1] = Field(
        default=CURRENT, alias="schema", description="Version of this format. Written by the server; older ones are read for ever."
    )
    name: Name = Field(description="1–200 characters, unique in the organization.", json_schema_extra={"minLength": 1, "maxLength": 200})
    description: Text = Field(
        default="", max_length=10_000, description="What it holds; shown to people, and to models that choose among several."
    )
    embedding_model: Name | None = Field(
        default=None, description="Name of a registered model. None: the organization's default, written into the version at publish."
    )
    store: Store = Field(default_factory=Store, description="Where vectors live.")
    chunking: Chunking = Field(default_factory=Chunking, description="How text is cut.")
    retrieval: RetrievalSettings = Field(default_factory=RetrievalSettings, description="What a search does by default.")
    budget: Budget = Field(default_factory=Budget, description="What it may spend in a month; no ceilings by default.")
    visibility: Literal["private", "organization"] = Field(
        default="private", description="`private`: granted users and admins; `organization`: every member."
    )
    language: Annotated[Text, AfterValidator(check_language)] = Field(
        default="auto", description="Of the word index: `auto` detects it per document; `simple` does not stem; else a name or ISO code."
    )
    metadata: dict[Key, MetadataField] = Field(
        default_factory=dict,
        max_length=200,
        description="What the metadata of documents holds, by key: `{type, description}`, or the type alone (`text`, `number`, `boolean`, "
        "`date`, `list`). With any, a filter on another key is refused; with none, types are told from the values.",
    )
    sources: list[Source] = Field(default_factory=list, max_length=1000, description="Where documents come from; names are unique.")

    @field_validator("sources")
    @classmethod
    def _distinct(cls, sources: list[Source]) -> list[Source]:
        names: dict[str, str] = {}
        ids: dict[str, str] = {}
        for source in sources:
            folded = fold(source.name)
            if folded in names:
                raise ValueError(f"has two sources named '{names[folded]}' and '{source.name}'. Rename one; capitals do not count.")
            if source.id is not None and source.id in ids:
                raise ValueError(f"gives '{ids[source.id]}' and '{source.name}' the same id. Leave the id out for the new one.")
            names[folded] = source.name
            if source.id is not None:
                ids[source.id] = source.name
        return sources
