"""How text is cut: sizes in tokens of the embedding model's own tokenizer, unless another one is named."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from kb.schemas.base import Document, rules_of

AUTO_TARGET = 400  # tokens, where the model reads that much
TRANSCRIPT = {"target_tokens": 450, "overlap": 0.15}


def _target(value: Any) -> Any:
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and 32 <= value <= 8000):
        return value
    raise ValueError("must be 'auto' or a whole number of tokens from 32 to 8000.")


def _overlap(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number: a fraction up to 0.5, or a whole number of tokens from 1.")
    if 0 <= value <= 0.5:
        return value
    if value >= 1 and (isinstance(value, int) or value.is_integer()):
        return int(value)
    raise ValueError(f"is {value}: write a fraction up to 0.5, or a whole number of tokens from 1.")


Strategy = Literal["structure", "recursive", "transcript"]
Tokenizer = Literal["model", "estimate", "cl100k_base", "o200k_base"]
TargetTokens = Annotated[
    Literal["auto"] | int,
    BeforeValidator(_target),
    Field(json_schema_extra={"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 32, "maximum": 8000}]}),
]
Overlap = Annotated[
    int | float,
    BeforeValidator(_overlap),
    Field(json_schema_extra={"anyOf": [{"type": "number", "minimum": 0, "maximum": 0.5}, {"type": "integer", "minimum": 1}]}),
]


class Chunking(Document):
    """Chunking of the knowledge base's documents."""

    strategy: Strategy = Field(
        default="structure",
        description="`structure` cuts by headings, paragraphs, tables, code and sentences; `recursive` by separators only; `transcript` by "
        "turns and times of speech (its own defaults: 450 tokens, overlap 0.15).",
    )
    target_tokens: TargetTokens = Field(
        default="auto",
        description="Tokens a chunk aims at, 32–8000. `auto` is 400, or what the embedding model reads if that is less. More than the "
        "model reads is clamped, with a warning.",
    )
    overlap: Overlap = Field(
        default=0.08,
        description="What a chunk repeats of the one before it: below 1 a fraction of the target, at most 0.5; from 1 a whole number of "
        "tokens, fewer than the target.",
    )
    min_chars: int = Field(
        default=120, ge=0, le=10_000, description="A chunk with fewer characters is joined to its neighbour where the target allows it."
    )
    tokenizer: Tokenizer = Field(
        default="model",
        description="What counts tokens: the embedding model's own tokenizer, an estimate by characters, or one of two public encodings.",
    )

    @model_validator(mode="before")
    @classmethod
    def _strategy_defaults(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("strategy") == "transcript":
            return {**TRANSCRIPT, **data}
        return data

    @field_validator("tokenizer")
    @classmethod
    def _installed(cls, tokenizer: str, info: ValidationInfo) -> str:
        rules = rules_of(info)
        if rules.strict and tokenizer not in ("model", "estimate", *rules.known_tokenizers):
            raise ValueError(f"'{tokenizer}' needs the package bpe-openai, which is not installed here. Write `model` or `estimate`.")
        return tokenizer

    @field_validator("overlap")
    @classmethod
    def _below_target(cls, overlap: int | float, info: ValidationInfo) -> int | float:
        target = info.data.get("target_tokens")
        limit = AUTO_TARGET if target == "auto" else target
        if limit is not None and overlap >= limit:
            raise ValueError(f"is {overlap} tokens, but must be fewer than the target ({limit}): a chunk would never move on.")
        return overlap
