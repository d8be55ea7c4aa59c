"""The ingest policy: what is made of a file. Written in part by a channel and by an upload, and merged with what lies below them.

    default < family of formats < knowledge base (chunking) < channel < upload

A later layer wins key by key, at every depth. The embedding model is no part of it: that is the knowledge base's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator

from kb.schemas.addresses import check_url
from kb.schemas.base import BIGGEST_INTEGER, Document, Name, Text, rules_of
from kb.schemas.chunking import Chunking, Overlap, Strategy, TargetTokens, Tokenizer
from kb.schemas.parameters import looks_secret
from kb.schemas.remote import SECRET_NAME
from kb.schemas.source import MAX_FILE_CONTENT_LENGTH

Mode = Literal["auto", "text", "tabular", "store"]
Line = Annotated[Text, Field(max_length=300)]


class PolicyChunking(Document):
    """How the text is cut; what is left out comes from the layers below."""

    strategy: Strategy = Field(
        default="structure", description="structure, recursive or transcript (which brings 450 tokens, overlap 0.15)."
    )
    target_tokens: TargetTokens = Field(default="auto", description="Tokens a chunk aims at: auto, or 32–8000.")
    overlap: Overlap = Field(default=0.08, description="Below 1 a fraction of the target, at most 0.5; from 1 a number of tokens.")
    min_chars: int = Field(default=120, ge=0, le=10_000, description="A shorter chunk is joined to its neighbour.")
    tokenizer: Tokenizer = Field(default="model", description="What counts tokens.")


class BoundService(Document):
    """A service of somebody else. Endpoint and credential are used only together, as an operator has bound them to each other."""

    endpoint: Text | None = Field(default=None, max_length=2000, description="Address of the service, as an operator has bound it.")
    model: Line | None = Field(default=None, description="The service's name of the model.")
    credential: Text | None = Field(default=None, description="Name of the secret that is bound to the endpoint; never the key itself.")
    prompt: Annotated[Text, Field(max_length=2000)] | None = Field(default=None, description="A hint for the model.")

    @field_validator("endpoint")
    @classmethod
    def _endpoint(cls, value: str | None, info: ValidationInfo) -> str | None:
        # Private addresses are the operator's to bind; whether this one is bound is asked where the bindings are.
        return None if value is None else check_url(value, rules=rules_of(info), public=False)

    @field_validator("credential")
    @classmethod
    def _credential(cls, value: str | None) -> str | None:
        if value is not None and (not SECRET_NAME.fullmatch(value) or looks_secret(value)):
            raise ValueError("must be the name of a secret (letters, digits, _ . -), not the key itself. Store the key as a secret first.")
        return value


class Transcription(BoundService):
    """What turns speech into text. Without an endpoint, the engine of this installation, if it has one."""

    language: Annotated[Text, Field(max_length=16)] | None = Field(default=None, description="A hint: the language that is spoken.")


class Vision(BoundService):
    """What describes pictures. Without an endpoint, pictures are not described."""


class Table(Document):
    """How a table becomes a dataset."""

    name: Name | None = Field(default=None, description="Of the dataset; the file's name without its ending where none is given.")
    mode: Literal["append", "replace"] = Field(default="append", description="What a second file of the dataset does.")
    partition_by: list[Line] = Field(default_factory=list, max_length=8, description="Columns that its files are parted by.")
    delimiter: Annotated[Text, Field(min_length=1, max_length=1)] | None = Field(default=None, description="Without it, what is found.")
    header: bool = Field(default=True, description="The first row names the columns; else they are f0, f1 …")


class PolicyDocument(Document):
    """An ingest policy as a channel or an upload writes it. Only what is written counts; unknown keys are refused by their path."""

    mode: Mode = Field(
        default="auto",
        description="`text` reads, cuts and embeds; `tabular` makes a dataset; `store` only keeps the bytes; `auto` is by the content.",
    )
    keep_markdown: bool = Field(default=True, description="Keep the Markdown that was read, so that cutting anew need not read again.")
    max_content_length: int = Field(
        default=MAX_FILE_CONTENT_LENGTH, ge=1, le=BIGGEST_INTEGER, description="Characters kept of one document."
    )
    ocr: Literal["auto", "off"] = Field(default="auto", description="Read the text in pictures and scanned pages where there is no other.")
    chunking: PolicyChunking = Field(default_factory=PolicyChunking, description="How the text is cut.")
    transcribe: Transcription = Field(default_factory=Transcription, description="What turns speech into text.")
    vision: Vision = Field(default_factory=Vision, description="What describes pictures.")
    table: Table = Field(default_factory=Table, description="How a table becomes a dataset.")


@dataclass(frozen=True, slots=True)
class Policy:
    """The merged policy that a file is worked by, ready for the stages; `family` is a key of families.FAMILIES, "" where none was asked."""

    family: str = ""
    mode: Mode = "auto"
    keep_markdown: bool = True
    max_content_length: int = MAX_FILE_CONTENT_LENGTH
    ocr: Literal["auto", "off"] = "auto"
    chunking: Chunking = field(default_factory=Chunking)
    transcribe: Transcription = field(default_factory=Transcription)
    vision: Vision = field(default_factory=Vision)
    table: Table = field(default_factory=Table)

    @classmethod
    def of(cls, document: Mapping[str, Any], *, family: str) -> Self:
        """From the merged document, which was validated. Keys of a later version are passed over."""
        known = PolicyDocument.model_validate(document, extra="ignore")
        values = {name: getattr(known, name) for name in PolicyDocument.model_fields if name != "chunking"}
        return cls(family=family, chunking=Chunking.model_validate(document["chunking"], extra="ignore"), **values)
