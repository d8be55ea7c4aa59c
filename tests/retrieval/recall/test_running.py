"""Checks of recall: on exact plans, on an index that loses, on what has no vectors, and over REST, command and admin."""

import io
import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.urls import reverse
from django.utils import timezone

from config.errors import Conflict, InvalidInput
from kb.models import Chunk
from kb.stores import vectors
from kb.stores.sampling import sample_documents, sample_vectors, search_exactly
from kb.stores.vectors import VectorRow, add_vectors, search_vectors
from retrieval import jobs
from retrieval.models import RecallCheck, RetrievalTrace
from retrieval.recall.running import start_check, warnings_of
from tests.kb.api.conftest import signed_in
from tests.kb.sessions import staff

pytestmark = pytest.mark.django_db


def check(actor, library, **values) -> RecallCheck:
    made = start_check(actor, library.knowledge_base, send=False, seed=1, **values)
    jobs.finish_here("recall", made)
    return made


def fill(library, documents: int) -> None:
    for number in range(documents):
        library.add(f"word{number} word{number + 1}", f"word{number + 2} other{number}")


def test_exact_plans_find_everything_at_every_share(organization, actor, library) -> None:
    fill(library, 20)
    RetrievalTrace.objects.create(
        organization=organization, query="word3 word4", mode="hybrid", knowledge_base_ids=[library.knowledge_base.id]
    )
    made = check(actor, library, queries=10)
    assert (made.status, made.recall, made.suggested_ef, warnings_of(made)) == ("succeeded", 1.0, None, [])
    assert [(level["selectivity"], level["documents"], level["queries"], level["plans"]) for level in made.levels] == [
        (1.0, 20, 10, {"exact": 10}),
        (0.1, 2, 10, {"exact": 10}),
    ]
    assert [level["short"] for level in made.levels] == [0, 0]
    assert made.notes == ["1 % of 20 documents is less than one: not measured.", "0.1 % of 20 documents is less than one: not measured."]
    assert "word3" not in json.dumps([made.settings, made.levels, made.notes])  # nothing of a question is kept


def test_questions_that_cannot_be_embedded_leave_the_stored_vectors(organization, actor, library) -> None:
    fill(library, 3)
    held = {"organization": organization, "query": "word", "mode": "hybrid", "knowledge_base_ids": [library.knowledge_base.id]}
    RetrievalTrace.objects.create(**held)
    model = library.knowledge_base.space.embedding_model
    type(model).objects.filter(pk=model.pk).update(provider="openai", endpoint="http://127.0.0.1:9/v1")
    made = check(actor, library, queries=4)
    assert (made.recall, made.levels[0]["queries"]) == (1.0, 4)
    assert made.notes[0].startswith("Questions that people asked were left out: ")


def test_nothing_to_look_for_is_told(actor, library) -> None:
    made = check(actor, library)
    assert (made.status, "no vector" in made.error or "has a vector" in made.error) == ("failed", True)


def test_one_at_a_time(actor, library) -> None:
    fill(library, 1)
    first = start_check(actor, library.knowledge_base, send=False)
    with pytest.raises(Conflict):
        start_check(actor, library.knowledge_base, send=False)
    jobs.cancel(first)
    library.knowledge_base.space = None
    with pytest.raises(InvalidInput, match="no embedding model"):
        start_check(actor, library.knowledge_base, send=False)


def test_samples_are_the_same_for_a_seed_and_only_of_the_knowledge_base(actor, make_library) -> None:
    library, other = make_library("One"), make_library("Two")
    fill(library, 6)
    fill(other, 6)
    place = {"organization": library.knowledge_base.organization_id, "space": library.knowledge_base.space}
    named = {**place, "knowledge_base": library.knowledge_base.id}
    drawn = [sample_documents(**named, count=3, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(drawn[0]) | set(drawn[2]) <= {document.id for document in library.documents}
    vectors_drawn = sample_vectors(**named, count=100, seed=1)
    assert len(vectors_drawn) == 12
    query = vectors_drawn[0]
    found = search_exactly(**named, query=query, limit=100)
    assert {chunk for chunk, _ in found} == set(Chunk.objects.filter(knowledge_base=library.knowledge_base).values_list("id", flat=True))
    assert found == search_vectors(**place, knowledge_bases=[library.knowledge_base.id], query=query, limit=100).rows
    some = search_exactly(**named, query=query, limit=100, documents=drawn[0])
    assert {chunk for chunk, _ in some} == set(Chunk.objects.filter(document__in=drawn[0]).values_list("id", flat=True))
    foreign = {**named, "organization": library.knowledge_base.id}
    assert (search_exactly(**foreign, query=query, limit=9), sample_vectors(**foreign, count=9, seed=1)) == ([], [])


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_an_index_that_loses_is_told_with_a_remedy(actor, make_library, monkeypatch) -> None:
    """A graph of two neighbours a node over random vectors loses much."""
    library = make_library("Large")
    document = library.add()
    space, base = library.knowledge_base.space, library.knowledge_base
    same = {"organization_id": base.organization_id, "knowledge_base": base, "document": document, "text": "x", "tokens": 1}
    rows = Chunk.objects.bulk_create(Chunk(**same, ordinal=n, start=n, end=n + 1, text_hash=b"x") for n in range(3000))
    random = np.random.default_rng(1).normal(size=(3000, 256))
    place = {"organization": base.organization_id, "space": space, "knowledge_base": base.id}
    add_vectors(**place, rows=[VectorRow(row.pk, vector) for row, vector in zip(rows, random, strict=True)])
    type(document).objects.filter(pk=document.pk).update(chunk_count=3000)
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "INSERT INTO lexical_total (kb, organization, chunks, length, average) VALUES (%s, %s, 3000, 3000, 1)",
            [base.id, base.organization_id],
        )
    leaves = [f"embedding_256_s{space.pk}_h{remainder}" for remainder in range(4)]
    monkeypatch.setattr(vectors, "EXACT_ROWS", 0)
    with connections["owner"].cursor() as cursor:
        for leaf in leaves:
            options = "WITH (m = 2, ef_construction = 4)"
            cursor.execute(f"CREATE INDEX {leaf}_lossy ON {leaf} USING hnsw (vector halfvec_cosine_ops) {options}")
    with connections["default"].cursor() as cursor:  # so few rows the planner would rather sort
        cursor.execute("SET enable_seqscan = off; SET enable_sort = off")
    try:
        made = check(actor, library, queries=20)
        (level,) = made.levels
        assert level["plans"] == {"hnsw": 20}
        assert made.recall == level["recall"] < 0.95
        told = warnings_of(made)
        assert "below 0.95" in told[0]
        assert made.suggested_ef in (None, 200, 400, 700, 1000)
        assert (f"An ef_search of {made.suggested_ef}" if made.suggested_ef else "No ef reached it") in told[1]
        with pytest.raises(CommandError, match=r"below 0\.95"):
            call_command("check_recall", str(base.id), "--queries", "5", "--seed", "1", stdout=io.StringIO())
    finally:
        with connections["default"].cursor() as cursor:
            cursor.execute("RESET enable_seqscan; RESET enable_sort")
        with connections["owner"].cursor() as cursor:
            for leaf in leaves:
                cursor.execute(f"DROP INDEX {leaf}_lossy")


def test_the_command_prints_and_keeps(actor, library) -> None:
    fill(library, 12)
    out = io.StringIO()
    call_command("check_recall", "handbooks", "--queries", "3", stdout=out)
    assert "100 % (12)" in out.getvalue()
    assert "exact × 3" in out.getvalue()
    call_command("check_recall", library.id, "--queries", "3", "--json", stdout=(told := io.StringIO()))
    assert json.loads(told.getvalue())["recall"] == 1.0
    assert RecallCheck.objects.filter(recall=1.0).count() == 2
    with pytest.raises(CommandError, match="no knowledge base"):
        call_command("check_recall", "Nobody's")


def test_the_routes(library, alice, bob) -> None:
    fill(library, 2)
    url = f"/api/v1/knowledge-bases/{library.id}/recall-checks"
    assert signed_in(bob).post(url, {}, format="json").status_code == 403
    assert signed_in(alice).post(url, {"queries": 0}, format="json").status_code == 400
    started = signed_in(alice).post(url, {"queries": 2}, format="json")
    assert (started.status_code, started.json()["verdict"]) == (202, None)
    jobs.work("recall", started.json()["id"])
    (shown,) = signed_in(bob).get(url).json()["items"]
    assert (shown["verdict"], shown["recall"], shown["levels"][0]["plans"]) == ("well", 1.0, {"exact": 2})
    assert signed_in(bob).get(f"{url}/{shown['id']}").json() == shown
    assert signed_in(alice).post(f"{url}/{shown['id']}/cancel").status_code == 400


def test_the_page_of_a_knowledge_base_warns(library, alice) -> None:
    page = reverse("admin:kb_knowledgebase_change", args=[library.id])
    level = {"selectivity": 0.01, "recall": 0.81, "missing": 2}
    of = {"organization_id": library.knowledge_base.organization_id, "knowledge_base": library.knowledge_base, "version": 1}
    of |= {"settings": {"k": 10}, "finished_at": timezone.now()}
    RecallCheck.objects.create(**of, levels=[level], recall=0.81, suggested_ef=400)
    text = staff(alice).get(page).content.decode()
    assert "Recall@10 is 0.810 at 1 % of the documents, below 0.95." in text
    assert "An ef_search of 400 reached it" in text
    assert "2 rows that exist were not found." in text
    RecallCheck.objects.create(**of, levels=[level | {"recall": 1.0, "missing": 0}], recall=1.0)
    assert "Recall check of" not in staff(alice).get(page).content.decode()


def test_the_admin(actor, library, alice, bob, mallory) -> None:
    fill(library, 2)
    start = reverse("admin:retrieval_recallcheck_check_recall")
    assert staff(bob).post(start, {"knowledge_base": library.id}).status_code == 200
    assert staff(mallory).post(start, {"knowledge_base": library.id}).status_code == 404
    assert not RecallCheck.objects.exists()
    page = staff(alice).post(start, {"knowledge_base": library.id}).url
    jobs.work("recall", RecallCheck.objects.get().pk)
    text = staff(bob).get(page).content.decode()
    assert "All is well." in text
    assert "exact × " in text
    assert staff(mallory).get(page).status_code == 302
    assert staff(bob).get(reverse("admin:retrieval_recallcheck_changelist")).context["cl"].result_count == 1
