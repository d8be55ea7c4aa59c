"""What the metadata of documents holds: declared, so that filters compare as meant and a misspelt key is told."""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StringConstraints, model_validator

from kb.schemas.base import Document, Text

MetadataType = Literal["text", "number", "boolean", "date", "list"]
METADATA_TYPES: tuple[str, ...] = get_args(MetadataType)
Key = Annotated[Text, StringConstraints(min_length=1, max_length=200)]


class MetadataField(Document):
    """One key of documents' metadata. `year: number` is short for `year: {type: number}`."""

    type: MetadataType = Field(
        description="How filters compare it: `number` also where a document holds it as text, `date` as points in time (a day is the whole "
        "day), `list` by its entries."
    )
    description: Text = Field(default="", max_length=1000, description="What it says; for people, and for models that write filters.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        return {"type": data} if isinstance(data, str) else data
