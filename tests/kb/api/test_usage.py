"""What embedding cost, over REST: sums of months, and what is left of the budget."""

from datetime import date
from decimal import Decimal

import pytest

from kb import services, usage
from kb.models import Usage
from kb.models.usage import SLOTS

pytestmark = pytest.mark.django_db


def charge(knowledge_bases, model, *, tokens: int, purpose: str = "documents") -> None:
    ids = [knowledge_base.id for knowledge_base in knowledge_bases]
    organization = knowledge_bases[0].organization_id
    usage.charge(organization_id=organization, knowledge_bases=ids, model=model, purpose=purpose, texts=2, tokens=tokens)


def test_sums_by_month_model_and_purpose(client, client_of, carol, knowledge_base, hashing_model):
    hashing_model.price_per_million_tokens = Decimal("0.5")
    charge([knowledge_base], hashing_model, tokens=600_000)
    Usage.objects.update(month=date(2020, 2, 1))
    for _ in range(3 * SLOTS):
        charge([knowledge_base], hashing_model, tokens=1000)
    charge([knowledge_base], hashing_model, tokens=7, purpose="questions")
    url = f"/api/v1/knowledge-bases/{knowledge_base.id}/usage"
    body = client.get(f"{url}?months=120").json()
    entries = [(entry["purpose"], entry["requests"], entry["texts"], entry["tokens"], Decimal(entry["cost"])) for entry in body["items"]]
    assert entries == [
        ("documents", 24, 48, 24_000, Decimal("0.012")),
        ("questions", 1, 2, 7, Decimal("0.0000035")),
        ("documents", 1, 2, 600_000, Decimal("0.3")),
    ]
    assert (body["items"][0]["name"], body["items"][0]["model"]) == ("Handbooks", "hashing")
    assert body["spending"]["tokens"] == 24_007
    assert (body["spending"]["monthly_tokens"], body["spending"]["exhausted"]) == (None, "")
    assert [entry["month"] for entry in client.get(f"{url}?months=1").json()["items"]] == [usage.this_month().isoformat()] * 2
    assert client.get(f"{url}?months=0").status_code == 400
    whole = client_of(carol).get("/api/v1/usage?months=120").json()
    assert whole["items"] == body["items"]


def test_the_organization_s_is_for_its_administrators_and_keeps_what_is_deleted(
    client, client_of, carol, mallory, knowledge_base, hashing_model
):
    charge([knowledge_base], hashing_model, tokens=5)
    assert client.get("/api/v1/usage").status_code == 403
    assert client_of(mallory).get("/api/v1/usage").json() == {"items": []}
    assert client_of(mallory).get(f"/api/v1/knowledge-bases/{knowledge_base.id}/usage").status_code == 404
    Usage.objects.update(knowledge_base=None)  # as its deletion leaves it
    (entry,) = client_of(carol).get("/api/v1/usage").json()["items"]
    assert (entry["name"], entry["knowledge_base_id"], entry["tokens"]) == (None, None, 5)


def test_what_several_asked_for_together_is_shared_out(actor, knowledge_base, hashing_model):
    other = services.create_knowledge_base(actor, document={"name": "Other"})
    charge([knowledge_base, other], hashing_model, tokens=7)
    assert sorted(usage.spending(each.id).tokens for each in (knowledge_base, other)) == [3, 4]


@pytest.mark.parametrize(("budget", "path"), [({"monthly_tokens": -1}, "budget.monthly_tokens"), ({"yearly": 1}, "budget.yearly")])
def test_a_budget_that_does_not_hold_is_refused_by_path(client, knowledge_base, budget, path):
    answer = client.post("/api/v1/knowledge-bases", {"name": "New", "budget": budget}, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"] == path


def test_the_admin_shows_a_line_a_sum(admin_client, knowledge_base, hashing_model):
    for _ in range(2 * SLOTS):
        charge([knowledge_base], hashing_model, tokens=1000)
    page = admin_client.get("/admin/kb/usage/").content.decode()
    assert "16,000" in page
    assert page.count("/admin/kb/usage/0") <= 2  # one line, linked once or twice
