"""What every configuration document shares: strict types, frozen values, text without traps, and the rules of one installation."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo

from config.addresses import AllowedNetwork

BIGGEST_INTEGER = 2_147_483_647  # what an integer column of the database holds


@dataclass(frozen=True, slots=True)
class Rules:
    """What a document is checked against besides itself. With `strict` false (a stored document) only its shape counts: a raised limit
    or a store that was taken away must not make an old version unreadable."""

    strict: bool = True
    known_stores: frozenset[str] = field(default=frozenset({"pgvector", "memory"}))
    missing_stores: Mapping[str, str] = field(default_factory=dict)  # known ones that cannot be used here, each with the sentence why
    known_providers: frozenset[str] = field(default=frozenset({"local", "openai", "hashing"}))
    min_interval_seconds: int = 60
    known_rerankers: frozenset[str] | None = None  # None: not checked
    known_tokenizers: frozenset[str] = field(default=frozenset({"cl100k_base", "o200k_base"}))  # besides `model` and `estimate`
    allowed_networks: tuple[AllowedNetwork, ...] = ()
    trusted: bool = False  # the author is an operator of the installation, whose endpoints may be private


STRICT = Rules()
LENIENT = Rules(strict=False)


def rules_of(info: ValidationInfo) -> Rules:
    """Validation without a context is strict: forgetting it must refuse too much, not too little."""
    return info.context if isinstance(info.context, Rules) else STRICT


class Document(BaseModel):
    """A part of a configuration document. Nothing is coerced ("5" is not 5), unknown keys are refused, defaults are checked like input.

    Never dump with `exclude_defaults`: a reader with other defaults would read another document."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        validate_default=True,
        allow_inf_nan=False,
        validate_by_name=False,
        validate_by_alias=True,
        serialize_by_alias=True,
        hide_input_in_errors=True,  # an input may hold a secret that was pasted in the wrong place
    )


def refuse_unstorable(text: str) -> str:
    """NUL does not go into Postgres, lone surrogates do not go into UTF-8, and others only deceive (tab and line breaks stay)."""
    for character in text:
        if character in "\t\n\r":
            continue
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise ValueError(f"holds the character U+{ord(character):04X}, which cannot be stored. Remove it.")
    return text


def refuse_reference(text: str) -> str:
    if "${secret:" in text:
        raise ValueError("names a secret, but secrets are not resolved here. Only parameters that take a secret may name one.")
    return text


def clean_line(text: str) -> str:
    """One line of text as a person means it: composed form, no space around it, nothing that breaks the line, something to see."""
    text = unicodedata.normalize("NFC", text).strip()
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            raise ValueError(f"holds the character U+{ord(character):04X}, which a name cannot have. Remove it.")
    if text and all(unicodedata.category(character)[0] in "CZM" for character in text):
        raise ValueError("shows nothing: write at least one visible character.")
    return text


def clean_name(name: str) -> str:
    name = clean_line(name)
    if not 1 <= len(name) <= 200:
        raise ValueError(f"must have 1 to 200 characters, spaces around it not counted; it has {len(name)}.")
    return name


def fold(name: str) -> str:
    """Two names are the same if their folds are."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold()).strip()


def json_limits(**limits: Any) -> dict[str, Any]:
    """Limits that a validator checks itself, for readers of the JSON Schema."""
    return {"json_schema_extra": limits}


Text = Annotated[str, AfterValidator(refuse_unstorable), AfterValidator(refuse_reference)]
Name = Annotated[str, AfterValidator(clean_name), AfterValidator(refuse_reference)]
