"""Traces in the admin are those that the API would show."""

import pytest
from django.urls import reverse

from kb import services
from retrieval.models import RetrievalTrace
from tests.kb.sessions import staff

pytestmark = pytest.mark.django_db


def shown(user) -> set[str]:
    answer = staff(user).get(reverse("admin:retrieval_retrievaltrace_changelist"))
    assert answer.status_code == 200
    return {trace.query for trace in answer.context["cl"].result_list}


def test_staff_sees_the_traces_of_what_it_may_search(organization, actor, knowledge_base, alice, bob, carol, mallory):
    private = services.create_knowledge_base(actor, document={"name": "Alice's own"})
    for query, found in (("open", knowledge_base), ("private", private)):
        RetrievalTrace.objects.create(organization=organization, query=query, mode="keyword", knowledge_base_ids=[found.id])
    assert shown(alice) == {"open", "private"}
    assert shown(bob) == {"open"}
    assert shown(carol) == {"open", "private"}
    assert shown(mallory) == set()


def test_a_trace_is_read_and_never_changed(organization, knowledge_base, bob, mallory):
    trace = RetrievalTrace.objects.create(organization=organization, query="leave", mode="keyword", knowledge_base_ids=[knowledge_base.id])
    page = reverse("admin:retrieval_retrievaltrace_change", args=[trace.pk])
    assert staff(bob).get(page).status_code == 200
    assert staff(bob).post(page, {"query": "other"}).status_code == 403
    assert staff(mallory).get(page).status_code == 302  # as for what is not there
