"""The life of a document with each store over a network, against what the contract is run against."""

import pytest

from config.registry import Registry
from ingestion.services.pushes import delete_document
from kb import services, store_removals
from kb.models import Chunk, Document, StoreRemoval
from kb.schemas.parameters import is_secret_key
from kb.store_drift import StoreDrift, compare_store
from kb.vector_stores import stores_of
from tests.ingestion.stores.outside import ask, put
from tests.kb.stores.contract.peers import PEERS

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])
OUTSIDE = sorted(set(PEERS) - {"pgvector", "memory"})
LEAVE = "Everybody has thirty days of leave a year."
NOTICE = "The notice period is three months to the end of a quarter."


@pytest.fixture(params=OUTSIDE)
def filled(request, tmp_path, actor, hashing_model):
    with Registry("peer", PEERS).load(request.param)(tmp_path) as peer:
        parameters = dict(peer.spec.parameters)
        for name in [name for name in parameters if is_secret_key(name)]:
            services.set_secret(organization=actor.organization, name=name.upper(), value=parameters[name])
            parameters[name] = f"${{secret:{name.upper()}}}"
        store = {"type": peer.spec.type, "parameters": parameters}
        document = {"name": request.param, "store": store, "retrieval": {"min_score": 0.0, "neighbours": 0}}
        knowledge_base = services.create_knowledge_base(actor, document=document)
        assert put(knowledge_base, LEAVE).status == "succeeded"
        assert put(knowledge_base, NOTICE, "notice").status == "succeeded"
        yield knowledge_base


def drift(knowledge_base) -> list[StoreDrift]:
    return [compare_store(knowledge_base, space=space, store=store) for space, store in stores_of(knowledge_base).items()]


def test_found_replaced_and_deleted(filled, actor):
    assert drift(filled) == [StoreDrift(0, ())]
    assert ask(actor, filled, "days of leave", mode="vector").hits[0].text == LEAVE
    answer = ask(actor, filled, "the notice period", mode="hybrid")
    assert answer.hits[0].text == NOTICE
    assert all(hit.scores.vector is not None for hit in answer.hits)
    put(filled, "Everybody has forty days of leave a year.")
    assert [text for (text,) in Chunk.objects.order_by("id").values_list("text")] == [NOTICE, "Everybody has forty days of leave a year."]
    assert "forty" in ask(actor, filled, "days of leave", mode="vector").hits[0].text
    assert drift(filled) == [StoreDrift(0, ())]
    delete_document(Document.objects.get(knowledge_base=filled, chunks__text=NOTICE))
    store_removals.drain()
    assert not StoreRemoval.objects.exists()
    assert drift(filled) == [StoreDrift(0, ())]
    assert len(ask(actor, filled, "the notice period", mode="vector").hits) == 1
