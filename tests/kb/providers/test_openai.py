import json
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from config.addresses import AddressRefused
from config.errors import InvalidInput, PermanentProviderError, ProviderError, TransientProviderError
from kb.providers.base import ModelSpec, Role, embed
from kb.providers.hashing import hash_vector
from kb.providers.openai import OpenAIProvider
from tests.servers.openai_server import Answer, ScriptedServer

TEXTS = ["the first text", "a second one", "日本語 text", "number four"]
KEY = "sk-very-secret"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def spec(server: ScriptedServer) -> ModelSpec:
    return ModelSpec("remote", "openai", "hashing", 384, 8000, endpoint=server.endpoint, credential=KEY, trusted=True)


@pytest.fixture
def provider(spec: ModelSpec) -> Iterator[OpenAIProvider]:
    made = OpenAIProvider(spec)
    yield made
    made.close()


def assert_own_vectors(vectors: np.ndarray) -> None:
    np.testing.assert_allclose(vectors, [hash_vector(text, 384) for text in TEXTS], atol=1e-6)


def test_each_text_gets_its_own_vector_also_when_the_server_answers_in_another_order(server, spec, provider):
    server.answer_next(Answer(), Answer(shuffled=True))
    assert_own_vectors(embed(provider, spec, TEXTS, Role.DOCUMENT).vectors)
    assert_own_vectors(embed(provider, spec, TEXTS, Role.DOCUMENT).vectors)


def test_tokens_are_the_servers_count(spec, provider):
    assert embed(provider, spec, TEXTS, Role.DOCUMENT).tokens == sum(len(text.split()) for text in TEXTS)


def test_the_request_carries_the_key_and_nothing_of_the_environment(server, spec, provider, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-other")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-other")
    embed(provider, spec, TEXTS, Role.DOCUMENT)
    request = server.requests[0]
    assert request.authorization == f"Bearer {KEY}"
    assert "other" not in json.dumps(request.headers)
    assert request.headers["user-agent"].startswith("Lectern/")
    assert request.dimensions is None


def test_without_a_credential_none_is_sent(server, spec, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    bare = replace(spec, credential=None)
    provider = OpenAIProvider(bare)
    embed(provider, bare, TEXTS, Role.QUERY)
    provider.close()
    assert server.requests[0].authorization is None


def test_dimensions_are_passed_on(server, spec):
    small = replace(spec, dimension=256, parameters={"dimensions": 256})
    provider = OpenAIProvider(small)
    assert embed(provider, small, TEXTS, Role.DOCUMENT).vectors.shape == (4, 256)
    provider.close()
    assert server.requests[0].dimensions == 256


def test_batches_by_count_and_by_tokens(server, spec):
    narrow = replace(spec, parameters={"batch_texts": 3, "batch_tokens": 50})
    provider = OpenAIProvider(narrow)
    embed(provider, narrow, ["short"] * 7 + ["long text " * 30, "long text " * 15], Role.DOCUMENT)
    provider.close()
    assert [len(request.texts) for request in server.requests] == [1, 3, 3, 2]


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (Answer(status=429, retry_after=7), 7.0),
        (Answer(status=429), None),
        (Answer(status=503, retry_after=3), 3.0),
        (Answer(status=500), None),
        (Answer(status=408), None),
        (Answer(status=409), None),
        (Answer(status=529), None),
        (Answer(drop=True), None),
        (Answer(body="   "), None),
    ],
)
def test_transient_failures_are_not_repeated_here(server, spec, provider, answer, wait):
    server.answer_next(answer)
    with pytest.raises(TransientProviderError) as caught:
        embed(provider, spec, TEXTS, Role.DOCUMENT)
    assert caught.value.transient
    assert caught.value.retry_after == wait
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(status=401), "refuses the credential"),
        (Answer(status=403), "refuses the credential"),
        (Answer(status=404), "Check the model name 'hashing' and the endpoint"),
        (Answer(status=400), "rejects the request"),
        (Answer(status=400, code="context_length_exceeded"), "max_input_tokens"),
        (Answer(status=413), "max_input_tokens"),
        (Answer(status=422), "rejects the request"),
        (Answer(status=402), "Top it up"),
        (Answer(status=429, code="insufficient_quota"), "Top it up"),
        (Answer(status=302), "redirect"),
        (Answer(missing=1), "given 4 texts and answered with 3"),
        (Answer(dimension=128), "vectors of 128 numbers and is registered with 384"),
        (Answer(not_a_number=True), "not finite"),
        (Answer(body="{}"), "form of an embeddings endpoint"),
        (Answer(body="<html>a page</html>", content_type="text/html"), "form of an embeddings endpoint"),
        (Answer(body="null"), "form of an embeddings endpoint"),
        (Answer(body="[1, 2]"), "form of an embeddings endpoint"),
        (Answer(body='{"data": ' + "[" * 100_000 + "]" * 100_000 + "}"), "form of an embeddings endpoint"),
        (Answer(body=" " * 40_000_000), "more than 33,554,432 bytes"),
        (Answer(body='{"data": [{"index": 9, "embedding": [1.0]}]}'), "indexes"),
        (Answer(body='{"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}'), "indexes"),
    ],
)
def test_permanent_failures_say_what_to_do(server, spec, provider, answer, message):
    server.answer_next(answer)
    with pytest.raises(PermanentProviderError, match=message) as caught:
        embed(provider, spec, TEXTS, Role.DOCUMENT)
    assert not caught.value.transient


def test_a_server_that_repeats_the_key_does_not_get_it_into_the_message(server, spec, provider):
    server.answer_next(Answer(status=401, message=f"Incorrect API key provided: {KEY}."))
    with pytest.raises(ProviderError) as caught:
        embed(provider, spec, TEXTS, Role.DOCUMENT)
    assert "Incorrect API key" in str(caught.value)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_message_can_be_stored_whatever_the_server_says(server, spec, provider):
    server.answer_next(Answer(status=400, message="not\x00a\x1b[31m text\nof one line"))
    with pytest.raises(PermanentProviderError, match=r"not a \[31m text of one line"):
        embed(provider, spec, TEXTS, Role.DOCUMENT)


def test_a_count_of_tokens_can_be_stored_whatever_the_server_says(server, spec, provider):
    vectors = [{"index": index, "embedding": hash_vector(text, 384).tolist()} for index, text in enumerate(TEXTS)]
    server.answer_next(Answer(body=json.dumps({"data": vectors, "usage": {"prompt_tokens": 10**20, "total_tokens": -1}})))
    assert embed(provider, spec, TEXTS, Role.DOCUMENT).tokens < 2**63


def test_a_slow_server_is_a_transient_failure(server, spec):
    hasty = replace(spec, parameters={"timeout": 0.2})
    provider = OpenAIProvider(hasty)
    server.answer_next(Answer(delay=0.7))
    with pytest.raises(TransientProviderError, match="in time"):
        embed(provider, hasty, TEXTS, Role.DOCUMENT)
    provider.close()


def test_a_server_that_is_down_is_a_transient_failure(spec):
    with ScriptedServer() as gone:
        absent = replace(spec, endpoint=gone.endpoint)
    provider = OpenAIProvider(absent)
    with pytest.raises(TransientProviderError, match="cannot be reached"):
        embed(provider, absent, TEXTS, Role.DOCUMENT)
    provider.close()


def test_a_private_address_is_refused_for_an_endpoint_that_is_not_trusted(server, spec):
    distrusted = replace(spec, trusted=False)
    provider = OpenAIProvider(distrusted)
    with pytest.raises(AddressRefused):
        embed(provider, distrusted, TEXTS, Role.DOCUMENT)
    provider.close()
    assert server.requests == []


def test_several_threads_share_one_provider(spec, provider):
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: results.append(embed(provider, spec, TEXTS, Role.QUERY).vectors)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    for vectors in results:
        assert_own_vectors(vectors)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"dimensions": 256}}, "Make them equal"),
        ({"parameters": {"batch_texts": 0}}, "above 0"),
        ({"parameters": {"timeout": "soon"}}, "above 0"),
        ({"parameters": {"timeout": 86_400}}, "above 600 seconds"),
        ({"parameters": {"api_base": "x"}}, "no parameter api_base"),
        ({"endpoint": "localhost:8000"}, "no http or https address"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_sent(spec, changes, message):
    with pytest.raises(InvalidInput, match=message):
        OpenAIProvider(replace(spec, **changes))


def test_the_scripted_server_runs_as_a_process_and_logs_to_disk(tmp_path: Path, spec):
    script = Path(__file__).resolve().parents[2] / "servers" / "openai_server.py"
    log = tmp_path / "requests.jsonl"
    with subprocess.Popen([sys.executable, str(script), "--log", str(log)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        endpoint = process.stdout.readline().strip()
        here = replace(spec, endpoint=endpoint)
        provider = OpenAIProvider(here)
        try:
            embed(provider, here, TEXTS, Role.DOCUMENT)
            script_url = endpoint.removesuffix("/v1") + "/script"
            urllib.request.urlopen(script_url, data=b'[{"status": 500}]').close()
            with pytest.raises(TransientProviderError):
                embed(provider, here, ["again"], Role.DOCUMENT)
        finally:
            provider.close()
            process.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["status"], sorted(line["texts"])) for line in lines] == [(200, sorted(TEXTS)), (500, ["again"])]
