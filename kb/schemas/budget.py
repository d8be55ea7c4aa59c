"""What a knowledge base may spend at providers of embedding models."""

from pydantic import Field

from kb.schemas.base import BIGGEST_INTEGER, Document


class Budget(Document):
    """Ceilings of a calendar month, UTC. What documents and questions cost counts; only runs stop at a ceiling, questions are answered."""

    monthly_tokens: int | None = Field(default=None, ge=0, le=BIGGEST_INTEGER, description="Tokens of a month. None: no ceiling.")
    monthly_cost: float | None = Field(
        default=None,
        ge=0,
        le=1e12,
        description="Cost of a month, in the currency of the model's price. None: no ceiling; a model without a price costs nothing.",
    )
