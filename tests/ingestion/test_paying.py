"""What a provider refuses: the size of a batch, one text, the settings, or the key. A vendor's server with limits of its own decides."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.utils import timezone

from ingestion import claims, limiter
from ingestion.models import EmbeddedText, IngestionRun, ProviderCall, RunItem
from ingestion.paying import Paid, Payer
from ingestion.stages import slices
from ingestion.stages.texts import Wanted
from kb import services
from kb.embedding import provider_of
from kb.models import EmbeddingModel
from kb.providers import BatchLimits
from tests.servers.openai_server import Answer
from tests.servers.vendor_server import VendorServer, close_providers
from tests.servers.vendors import KEY

pytestmark = pytest.mark.django_db
WORDS = 8


@pytest.fixture
def server(hashing_model) -> Iterator[VendorServer]:
    """The installation's model is one of a server that takes any key; eight texts make a batch."""
    services.set_secret(organization=None, name="VENDOR", value=KEY)
    with VendorServer("openai", dimension=256) as running:
        values = {"provider": "openai", "endpoint": running.endpoint, "credential": "VENDOR", "parameters": {"batch_texts": 8}}
        EmbeddingModel.objects.filter(id=hashing_model.id).update(**values)
        yield running
        close_providers()


@pytest.fixture
def run(server, knowledge_base, source) -> IngestionRun:
    return make_run(knowledge_base, source, 16)


def make_run(knowledge_base, source, number: int) -> IngestionRun:
    """A run with a document for each of so many texts of eight words."""
    run = claims.claim(source, version=knowledge_base.current, space=knowledge_base.space, listed_at=timezone.now())
    scope = {"organization_id": run.organization_id, "space": run.space}
    for index in range(number):
        digest = uuid4().bytes * 2
        EmbeddedText.objects.create(**scope, text_hash=digest, text=f"text {run.id} {index} of eight words it is", tokens=WORDS)
        RunItem.objects.create(
            organization_id=run.organization_id, run=run, key=f"{index}.md", key_hash=uuid4().bytes, stage="extracted", text_hashes=[digest]
        )
    return run


def work(run: IngestionRun) -> None:
    slices.work("embed", run.id, f"{run.id}:{uuid4().hex}")


def work_off(run: IngestionRun) -> None:
    """As many slices as it takes on a busy machine."""
    for _ in range(20):
        if not RunItem.objects.filter(run=run, stage="extracted").exists():
            return
        work(run)


def spec_and_limits(run: IngestionRun):
    model = EmbeddingModel.objects.get(id=run.space.embedding_model_id)
    spec, provider = provider_of(model, organization_id=run.organization_id)
    return spec, provider, limiter.limits_of(spec, provider.limits)


@pytest.mark.parametrize(
    ("limit", "learnt"),
    [({"most_texts": 3}, BatchLimits(2, 2 * WORDS)), ({"most_tokens": 5 * WORDS}, BatchLimits(4, 4 * WORDS))],
)
def test_a_size_that_is_refused_is_halved_and_remembered_by_all_workers(run, knowledge_base, source, server, limit, learnt):
    for name, value in limit.items():
        setattr(server, name, value)
    work_off(run)
    assert not RunItem.objects.filter(run=run).exclude(stage="embedded").exists()
    assert sorted(set(server.paid_texts())) == sorted(server.paid_texts())
    assert len(server.paid_texts()) == 16 + 1  # and a plain sentence, to learn whether the settings are at fault
    assert spec_and_limits(run)[2] == learnt
    refused = server.statuses.count(400)
    assert refused <= 3
    claims.cancel(run)
    again = make_run(knowledge_base, source, 12)
    work_off(again)
    assert server.statuses.count(400) == refused
    assert not RunItem.objects.filter(run=again).exclude(stage="embedded").exists()


def test_a_text_too_long_for_the_model_is_found_and_fails_alone(run, server):
    long = EmbeddedText.objects.order_by("id")[5]
    EmbeddedText.objects.filter(id=long.id).update(text="long " * 50, tokens=50)
    server.longest = 20
    work_off(run)
    assert RunItem.objects.filter(run=run, stage="embedded").count() == 15
    item = RunItem.objects.get(run=run, stage="done")
    assert (item.verdict, item.reason) == ("failed", "embedding_failed")
    assert "too long" in item.error
    assert EmbeddedText.objects.exclude(error="").get().id == long.id
    assert len(server.paid_texts()) == len(set(server.paid_texts()))
    _, provider, limits = spec_and_limits(run)
    assert limits == provider.limits  # no size was at fault


def test_where_a_plain_sentence_is_refused_too_the_settings_are_at_fault_and_no_text_is(run, server):
    server.answer_next(*[Answer(status=400, message="unknown parameter")] * 2)
    work(run)
    assert len(server.asked) == 2
    assert set(RunItem.objects.filter(run=run).values_list("reason", flat=True)) == {"embedding_failed"}
    assert "unknown parameter" in RunItem.objects.filter(run=run).first().error
    assert not EmbeddedText.objects.exclude(error="", attempts=0).exists()


def test_a_rotated_secret_counts_without_a_restart(run, knowledge_base, source, server):
    services.set_secret(organization=None, name="VENDOR", value="an old key")
    work(run)
    assert set(RunItem.objects.filter(run=run).values_list("verdict", flat=True)) == {"failed"}
    assert "credential" in RunItem.objects.filter(run=run).first().error
    services.set_secret(organization=None, name="VENDOR", value=KEY)
    claims.cancel(run)
    again = make_run(knowledge_base, source, 4)
    work(again)
    assert RunItem.objects.filter(run=again, stage="embedded").count() == 4


def test_a_secret_that_is_rotated_in_the_middle_of_a_slice_fails_nothing(run, server):
    services.set_secret(organization=None, name="VENDOR", value="an old key")
    spec, provider, _ = spec_and_limits(run)
    payer = Payer(run, spec, provider)
    services.set_secret(organization=None, name="VENDOR", value=KEY)
    batch = [texts_of(run)[0]]
    assert payer.pay(batch) is Paid.LATER
    assert RunItem.objects.filter(run=run, stage="extracted").count() == 16
    EmbeddedText.objects.update(lease_until=None)  # as the slice does at its end
    work_off(run)
    assert RunItem.objects.filter(run=run, stage="embedded").count() == 16


def texts_of(run: IngestionRun):
    return [Wanted(*row) for row in EmbeddedText.objects.order_by("id").values_list("id", "text", "tokens", "attempts")]


def test_who_is_told_to_wait_makes_all_with_the_key_wait_and_none_with_another(run, server):
    server.answer_next(Answer(status=429, retry_after=30))
    work(run)
    spec, _, _ = spec_and_limits(run)
    assert limiter.is_paused(spec)
    assert len(server.asked) == 1
    work(run)
    assert len(server.asked) == 1
    services.set_secret(organization=None, name="VENDOR", value="another key")
    assert not limiter.is_paused(spec_and_limits(run)[0])
    assert ProviderCall.objects.get().error
