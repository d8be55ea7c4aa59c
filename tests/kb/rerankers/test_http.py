"""Rerank services by HTTP, against a server that speaks the three dialects."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from config.addresses import AddressRefused
from config.errors import PermanentProviderError, TransientProviderError
from kb.rerankers import Late, RerankerSpec, load_reranker, rerank
from tests.servers.rerank_server import KEY, PATHS, Answer, RerankServer

PASSAGES = ["the cat sleeps", "the invoice is due in thirty days", "an invoice"]
QUERY = "when is the invoice due"
# What the server makes of them: words of the query that they hold.
EXPECTED = [0.2, 0.8, 0.2]


@pytest.fixture(autouse=True)
def _database(db) -> None:
    """Redis is emptied after tests that use the database; a pause of one is nobody else's."""


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with RerankServer() as running:
        yield running


@pytest.fixture(params=list(PATHS))
def spec(request: pytest.FixtureRequest, server: RerankServer) -> RerankerSpec:
    dialect = request.param
    return RerankerSpec("remote", dialect, "rerank-1", endpoint=server.endpoint(dialect), credential=KEY, trusted=True)


def ask(spec: RerankerSpec, passages=PASSAGES, **values) -> list[float]:
    return rerank(load_reranker(spec), spec, QUERY, passages, **values)


def test_each_passage_gets_its_own_score_whatever_order_the_server_answers_in(server, spec):
    server.answer_next(Answer(), Answer(reverse=True))
    assert ask(spec) == pytest.approx(EXPECTED)
    assert ask(spec) == pytest.approx(EXPECTED)
    body = server.requests[0]["body"]
    assert (body["model"], body["query"], body["documents"]) == ("rerank-1", QUERY, PASSAGES)
    assert body["top_k" if spec.provider == "voyage" else "top_n"] == 3
    assert server.requests[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(missing=1), "was given 3 passages and scored 2"),
        (Answer(shift=1), "scored one that is not among them"),
        (Answer(repeat=True), "scored one that is not among them"),
        (Answer(not_a_number=True), "no number"),
        (Answer(scale=20), "no probability"),
        (Answer(scale=-1), "no probability"),
        (Answer(body="<html>"), "does not answer as a rerank service"),
        (Answer(body='{"results": {"index": 1}, "data": [1]}'), "does not answer as a rerank service"),
        (Answer(body='{"results": [{"index": "0"}], "data": [{"index": null}]}'), "not among them"),
        (Answer(body="[" * 100_000), "does not answer as a rerank service"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(server, spec, answer, said):
    server.answer_next(answer)
    with pytest.raises(PermanentProviderError, match=said):
        ask(spec)


def test_logits_become_probabilities(server, spec):
    server.scores = {"cat": -800.0, "days": 0.0, "an invoice": 800.0}
    assert ask(replace(spec, parameters={"scores": "logits"})) == [0.0, 0.5, 1.0]


def test_a_late_answer_is_not_waited_for(server, spec):
    server.answer_next(Answer(delay=3))
    started = time.monotonic()
    with pytest.raises(Late, match=r"did not answer within 0\.3 s"):
        ask(replace(spec, timeout=0.3))
    assert time.monotonic() - started < 1.5


def test_who_is_told_to_slow_down_does_not_ask_again_until_then(server, spec):
    server.answer_next(Answer(status=429, retry_after=30, message="slow down"))
    with pytest.raises(TransientProviderError, match="limits the rate of requests") as caught:
        ask(spec)
    assert caught.value.retry_after == 30
    with pytest.raises(TransientProviderError, match="asked for a pause"):
        ask(spec)
    assert len(server.requests) == 1
    with pytest.raises(PermanentProviderError, match="401"):  # another key has not been told
        ask(replace(spec, credential="another"))


def test_too_many_documents_are_sent_in_parts(server, spec):
    server.most_documents = 2
    texts = [f"text {number} of the invoice" for number in range(7)]
    assert ask(spec, texts) == pytest.approx([0.4] * 7)
    assert max(len(request["body"]["documents"]) for request in server.requests[-2:]) <= 2
    before = len(server.requests)
    ask(spec, texts)  # what was learned is kept
    assert all(len(request["body"]["documents"]) <= 2 for request in server.requests[before:])


def test_a_single_passage_that_is_too_large_is_refused(server, spec):
    server.most_documents = 0
    with pytest.raises(PermanentProviderError, match="finds the request too large"):
        ask(spec, PASSAGES[:1])


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (401, PermanentProviderError, "Correct its secret"),
        (404, PermanentProviderError, "Check the name of the model"),
        (302, PermanentProviderError, "redirect"),
        (400, PermanentProviderError, "scripted answer"),
        (500, TransientProviderError, "answered 500"),
        (503, TransientProviderError, "answered 503"),
    ],
)
def test_refusals_say_what_to_do(server, spec, status, kind, said):
    server.answer_next(Answer(status=status, message=f"scripted answer about {KEY}"))
    with pytest.raises(kind, match=said) as caught:
        ask(spec)
    assert KEY not in str(caught.value)


def test_a_private_address_is_only_an_operator_s(spec):
    with pytest.raises(AddressRefused):
        ask(replace(spec, trusted=False))


def test_parameters_of_the_vendor_go_into_the_body(server, spec):
    own = {"cohere": {"max_tokens_per_doc": 512}, "voyage": {"truncation": False}, "jina": {}}[spec.provider]
    ask(replace(spec, parameters={**own, "max_documents": 2}))
    assert own.items() <= server.requests[0]["body"].items()
    assert [len(request["body"]["documents"]) for request in server.requests] == [2, 1]
