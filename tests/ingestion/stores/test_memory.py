"""The store of tests: in this process, and only where the operator lets it."""

import logging

import pytest

from config.errors import InvalidInput
from kb import services
from kb.stores import memory
from retrieval.search import RetrievalFailed
from tests.ingestion.stores.outside import ask, put

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])
DOCUMENT = {"name": "Forgetful", "visibility": "organization", "store": {"type": "memory"}, "retrieval": {"min_score": 0.0}}


@pytest.fixture
def debug(settings):
    settings.ENV = settings.ENV.model_copy(update={"debug": True})
    yield
    memory.forget_all()


def test_it_is_refused_where_nothing_may_be_forgotten(actor, hashing_model):
    with pytest.raises(InvalidInput) as refused:
        services.create_knowledge_base(actor, document=DOCUMENT)
    assert "'memory' cannot be used here. It is for tests" in str(refused.value.extra["errors"])


def test_it_answers_in_its_process_and_says_what_it_is(actor, hashing_model, debug, caplog):
    with caplog.at_level(logging.WARNING, "kb.vector_stores"):
        knowledge_base = services.create_knowledge_base(actor, document=DOCUMENT)
    assert "memory of each process" in caplog.text
    put(knowledge_base, "Everybody has thirty days of leave a year.")
    assert len(ask(actor, knowledge_base, "leave", mode="vector").hits) == 1
    memory.forget_all()  # as a restart would
    with pytest.raises(RetrievalFailed, match="holds nothing in this process"):
        ask(actor, knowledge_base, "leave", mode="vector")
