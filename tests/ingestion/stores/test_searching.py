"""Questions to a knowledge base whose vectors lie outside."""

import json
from contextlib import suppress
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from config.errors import Conflict
from ingestion.services.pushes import delete_document, ingest_text
from kb import services, store_removals, versioning
from kb.access import actor_for_user
from kb.embedding import provider_of
from kb.models import Chunk, Document
from kb.models.stores import StoreUse
from kb.providers import Role, embed
from kb.stores.base import Place, Point
from kb.vector_stores import open_for, stores_of
from retrieval.models import RetrievalTrace
from retrieval.requests import SearchRequest
from retrieval.search import RetrievalFailed, search
from tests.ingestion.stores.outside import KEY, ask, points_of, put, work

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])
LEAVE = "Everybody has thirty days of leave a year."


def texts(answer) -> set[str]:
    return {hit.text for hit in answer.hits}


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_a_failing_store_is_an_error_with_a_reason(outside, actor, qdrant, mode):
    put(outside, LEAVE)
    qdrant.failing = 503
    with pytest.raises(RetrievalFailed, match="qdrant") as failed:
        ask(actor, outside, "leave", mode=mode)
    assert failed.value.status == 503
    assert failed.value.extra["reason"] == "store_error"
    trace = RetrievalTrace.objects.get(id=failed.value.extra["trace_id"])
    assert trace.reason == "store_error"
    assert "503" in trace.error
    assert texts(ask(actor, outside, "leave", mode="keyword")) == {LEAVE}  # words are here


def test_a_collection_that_was_lost_is_not_an_empty_answer(outside, actor, qdrant):
    put(outside, LEAVE)
    qdrant.client.delete_collection(f"lectern_s{outside.space_id}")
    with pytest.raises(RetrievalFailed, match="has no collection"):
        ask(actor, outside, "leave")


def test_organizations_that_share_a_collection_see_their_own(make_outside, hashing_model, actor, mallory, qdrant):
    mine, other = make_outside("Mine"), make_outside("Other", actor_for_user(mallory))
    put(mine, LEAVE)
    put(other, "Their leave is secret.")
    assert len(qdrant.client.get_collections().collections) == 1
    assert texts(ask(actor, mine, "leave", mode="vector")) == {LEAVE}
    assert texts(ask(actor_for_user(mallory), other, "leave", mode="vector")) == {"Their leave is secret."}


def test_several_knowledge_bases_outside_and_here(make_outside, hashing_model, knowledge_base, actor):
    outside = make_outside("Outside")
    put(outside, LEAVE)
    put(knowledge_base, "A leave of absence is unpaid.")
    ids = [str(outside.id), str(knowledge_base.id)]
    answer = search(actor, SearchRequest(query="leave", knowledge_bases=ids, mode="vector", min_score=0.0, neighbours=0))
    assert texts(answer) == {LEAVE, "A leave of absence is unpaid."}


@pytest.mark.parametrize("most", [1000, 2])
def test_filters_are_the_stores_while_they_name_few_documents(outside, actor, qdrant, monkeypatch, most):
    monkeypatch.setattr("retrieval.regions.MOST_DOCUMENTS", most)
    for number in range(6):
        run = ingest_text(outside, text=f"{LEAVE} {number}", document_name=f"d{number}", metadata={"old": number < 4})
        work(run)
    condition = {"type": "eq", "key": "old", "value": True}
    answer = ask(actor, outside, "leave", mode="vector", filters=condition, explain=True)
    assert texts(answer) == {f"{LEAVE} {number}" for number in range(4)}
    assert answer.explanation["sides"][0]["in_scope"] is None
    fates = {one["verdict"] for one in answer.explanation["dropped_candidates"]}
    assert fates == (set() if most == 1000 else {"filtered"})
    asked = [body for _, path, body in qdrant.seen if path.endswith("/query")][-1]
    named = [part for part in asked["filter"]["must"] if part.get("key") == "document"]
    assert bool(named) == (most == 1000)


def test_points_without_chunks_do_not_crowd_out_those_with(outside, actor):
    put(outside, LEAVE)
    [store] = stores_of(outside).values()
    document = Document.objects.get(knowledge_base=outside)
    ahead = np.asarray(_vector(outside, "thirty days of leave"))
    stale = [Point(10**12 + number, document.id, ahead) for number in range(600)]
    open_for(outside.organization_id, store).add(Place(outside.organization_id, outside.id, outside.space), stale)
    answer = ask(actor, outside, "thirty days of leave", mode="vector", max_results=1)
    assert texts(answer) == {LEAVE}


def _vector(knowledge_base, text: str):
    spec, provider = provider_of(knowledge_base.space.embedding_model, organization_id=knowledge_base.organization_id)
    return embed(provider, spec, [text], Role.QUERY).vectors[0]


def test_a_document_stays_while_the_store_cannot_forget_it(outside, actor, qdrant):
    put(outside, LEAVE)
    document = Document.objects.get(knowledge_base=outside)
    qdrant.failing = 503
    _, key = services.create_api_key(actor.organization, name="key", role="editor", created_by=actor.user)
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {key}")
    answer = client.delete(f"/api/v1/knowledge-bases/{outside.id}/documents/{document.id}")
    assert (answer.status_code, answer.json()["code"]) == (503, "store_error")
    assert "The store qdrant" in answer.json()["detail"]
    assert Document.objects.filter(id=document.id).exists()
    assert Chunk.objects.filter(document=document).exists()
    qdrant.failing = 0
    assert texts(ask(actor, outside, "leave")) == {LEAVE}
    assert delete_document(document) == 1
    store_removals.drain()
    assert points_of(qdrant, outside) == set()


def edited(knowledge_base, **store):
    document = knowledge_base.current.document
    found = {**document["store"], **store}
    return document | {"store": found | {"parameters": {**document["store"]["parameters"], **store.get("parameters", {})}}}


def publish(actor, knowledge_base, document):
    version = versioning.publish(knowledge_base, document=document, expected=knowledge_base.current.number, actor=actor)
    knowledge_base.refresh_from_db()
    return version


def test_a_filled_knowledge_base_does_not_move(outside, actor, qdrant):
    put(outside, LEAVE)
    for document in (edited(outside, parameters={"collection_name": "other"}), outside.current.document | {"store": {"type": "pgvector"}}):
        with pytest.raises(Conflict, match="does not move to another store"):
            publish(actor, outside, document)
    assert outside.current.number == 1


def test_an_exchanged_key_is_no_move(outside, actor, qdrant):
    put(outside, LEAVE)
    services.set_secret(organization=actor.organization, name="QDRANT2", value=KEY)
    publish(actor, outside, edited(outside, parameters={"api_key": "${secret:QDRANT2}"}))
    services.set_secret(organization=actor.organization, name="QDRANT", value="wrong")
    assert texts(ask(actor, outside, "leave")) == {LEAVE}
    [store] = StoreUse.objects.values_list("store", flat=True)
    assert store["parameters"]["api_key"] == "${secret:QDRANT2}"


def test_an_empty_knowledge_base_moves(outside, actor, qdrant, hashing_model):
    put(outside, LEAVE)
    delete_document(Document.objects.get(knowledge_base=outside))
    publish(actor, outside, outside.current.document | {"store": {"type": "pgvector", "parameters": {}}})
    assert stores_of(outside) == {}
    put(outside, LEAVE)
    qdrant.failing = 503
    assert texts(ask(actor, outside, "leave", mode="vector")) == {LEAVE}


def test_nothing_moves_under_a_run(outside, actor):
    ingest_text(outside, text=LEAVE)
    with pytest.raises(Conflict, match="A run is under way"):
        publish(actor, outside, edited(outside, parameters={"collection_name": "other"}))


def test_a_filled_knowledge_base_here_does_not_move_outside(knowledge_base, actor, store_at):
    put(knowledge_base, LEAVE)
    services.set_secret(organization=actor.organization, name="QDRANT", value=KEY)
    with pytest.raises(Conflict, match="does not move"):
        publish(actor, knowledge_base, knowledge_base.current.document | {"store": store_at})


def check(organization, *options: str) -> dict[str, int]:
    out = StringIO()
    with suppress(CommandError):
        call_command("check_drift", "--json", "--organization", organization.name, *options, stdout=out)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    return {line["kind"]: line["count"] for line in found if "count" in line}


def test_drift_is_found_and_mended(outside, organization, qdrant):
    put(outside, LEAVE)
    put(outside, "Slate lies on the roof.", "roof")
    assert check(organization) == {}
    [store] = stores_of(outside).values()
    opened, place = open_for(outside.organization_id, store), Place(outside.organization_id, outside.id, outside.space)
    document = Document.objects.filter(knowledge_base=outside).first()
    opened.add(place, [Point(10**12, document.id, np.ones(256))])
    gone = min(points_of(qdrant, outside))
    opened.remove(place, [gone])
    assert check(organization) == {"orphan_points": 1, "missing_points": 1}
    check(organization, "--repair")
    assert 10**12 not in points_of(qdrant, outside)
    qdrant.failing = 503
    with pytest.raises(CommandError, match="qdrant"):
        call_command("check_drift", "--organization", organization.name, stdout=StringIO())
