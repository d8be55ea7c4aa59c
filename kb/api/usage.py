"""What embedding costs: by knowledge base and month, against its budget, and of the whole organization."""

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from uuid import UUID

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.errors import InvalidInput
from config.openapi import query
from kb import access, usage
from kb.api.shapes import Shape, answer

MOST_MONTHS = 120
MONTHS = query("months", "How many calendar months to look back, this one included.", kind=int, default=12)


class UsageEntry(Shape):
    """What answered calls came to in a month."""

    month: date
    """Its first day, UTC."""
    knowledge_base_id: UUID | None
    """None once the knowledge base is gone."""
    name: str | None
    model: str
    purpose: str
    """`documents` or `questions`."""
    requests: int
    texts: int
    tokens: int
    """As the provider counts; estimated where it does not say."""
    cost: Decimal
    """In the currency of the model's price; 0 without one."""


class SpendingAnswer(Shape):
    """This month against the ceilings of the current version; `exhausted` is empty, or says which is reached."""

    month: date
    tokens: int
    cost: Decimal
    monthly_tokens: int | None
    monthly_cost: Decimal | None
    exhausted: str


class KnowledgeBaseUsageAnswer(BaseModel):
    spending: SpendingAnswer
    items: list[UsageEntry]


class OrganizationUsageAnswer(BaseModel):
    items: list[UsageEntry]


class KnowledgeBaseUsage(APIView):
    @extend_schema(parameters=[MONTHS], responses=KnowledgeBaseUsageAnswer)
    def get(self, request: Request, kb_id: str) -> Response:
        """What the knowledge base spent at providers of embedding models, newest month first, and what is left of its budget."""
        found = access.get_knowledge_base(request.user, kb_id)
        spending = SpendingAnswer.model_validate(usage.spending(found.id))
        items = _entries(usage.usage_of(found, months=_months(request)))
        return answer(KnowledgeBaseUsageAnswer(spending=spending, items=items))


class OrganizationUsage(APIView):
    @extend_schema(parameters=[MONTHS], responses=OrganizationUsageAnswer)
    def get(self, request: Request) -> Response:
        """What all knowledge bases of your organization spent, those that are gone included; for administrators."""
        return answer(OrganizationUsageAnswer(items=_entries(usage.usage_of_organization(request.user, months=_months(request)))))


def _months(request: Request) -> int:
    text = request.query_params.get("months", "12")
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MOST_MONTHS):
        message = f"must be a whole number from 1 to {MOST_MONTHS}."
        raise InvalidInput(f"`months` {message}", errors=[{"path": "months", "message": message}])
    return int(text)


def _entries(rows: Iterable[Mapping[str, object]]) -> list[UsageEntry]:
    return [UsageEntry.model_validate(row) for row in rows]
