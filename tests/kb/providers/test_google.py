"""Google's ways of saying what a text is, and how its refusals are read."""

import json

import pytest

from config.errors import InvalidInput, PermanentProviderError, TransientProviderError
from kb.providers import check_spec
from kb.providers.base import ModelSpec, Role
from kb.providers.gemini import GeminiProvider, google_refusal
from kb.providers.google_tasks import prompted, task_type
from kb.providers.vertex import VertexProvider
from tests.servers.vendors import google_error

ACCOUNT = json.dumps({"type": "service_account"})


def gemini(model: str = "gemini-embedding-001", **parameters) -> ModelSpec:
    return ModelSpec("g", "gemini", model, 768, 2048, credential="k", parameters=parameters)


def vertex(model: str, **parameters) -> ModelSpec:
    return ModelSpec("v", "vertex", model, 768, 2048, credential=ACCOUNT, parameters={"project": "ours", **parameters})


@pytest.fixture(autouse=True)
def signed_in(monkeypatch):
    monkeypatch.setattr("kb.providers.google_identity.Identity.token", lambda self: "ya29.t")


def test_the_newer_model_is_told_by_words_before_the_text():
    spec = gemini("gemini-embedding-2")
    assert task_type(spec, Role.QUERY) is None
    assert prompted(spec, "a", Role.QUERY) == "task: search result | query: a"
    assert prompted(spec, "a", Role.DOCUMENT) == "title: none | text: a"
    with pytest.raises(InvalidInput, match="takes no task type"):
        check_spec(gemini("gemini-embedding-2", task_type="CLUSTERING"))


@pytest.mark.parametrize(
    ("pinned", "document", "query"),
    [
        (None, "RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"),
        ("RETRIEVAL_DOCUMENT", "RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"),  # else questions would be embedded as documents
        ("CLUSTERING", "CLUSTERING", "CLUSTERING"),
    ],
)
def test_a_task_that_is_not_retrieval_holds_for_both_sides(pinned, document, query):
    spec = gemini(**({} if pinned is None else {"task_type": pinned}))
    assert [task_type(spec, role) for role in (Role.DOCUMENT, Role.QUERY)] == [document, query]


def test_an_unknown_task_is_refused():
    with pytest.raises(InvalidInput, match=r"Known: .*RETRIEVAL_QUERY"):
        check_spec(gemini(task_type="POETRY"))


def test_gemini_puts_the_model_into_the_path_and_each_request():
    call = GeminiProvider(gemini("models/gemini-embedding-001", dimensions=768)).make_call(["a"], Role.QUERY)
    assert call.url == "https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert call.body["requests"] == [
        {
            "model": "models/gemini-embedding-001",
            "taskType": "RETRIEVAL_QUERY",
            "outputDimensionality": 768,
            "content": {"parts": [{"text": "a"}]},
        }
    ]


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("us-central1", "us-central1-aiplatform.googleapis.com"),
        ("global", "aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_the_host_follows_the_location(location, host):
    call = VertexProvider(vertex("text-embedding-005", location=location)).make_call(["a"], Role.DOCUMENT)
    model = "publishers/google/models/text-embedding-005:predict"
    assert call.url == f"https://{host}/v1/projects/ours/locations/{location}/{model}"


@pytest.mark.parametrize("name", ["project", "location"])
def test_no_other_host_is_written_as_a_location(name):
    with pytest.raises(InvalidInput, match=f"The parameter {name}"):
        check_spec(vertex("text-embedding-005", **{name: "evil.test/x"}))


def test_a_gemini_model_of_vertex_takes_one_text_by_its_content():
    provider = VertexProvider(vertex("gemini-embedding-2", dimensions=768))
    call = provider.make_call(["a"], Role.DOCUMENT)
    assert provider.limits.max_texts == 1
    assert call.url.endswith("models/gemini-embedding-2:embedContent")
    assert call.body == {
        "content": {"parts": [{"text": "title: none | text: a"}]},
        "embedContentConfig": {"autoTruncate": False, "outputDimensionality": 768},
    }
    answer = {"embedding": {"values": [1.0, 2.0]}, "usageMetadata": {"promptTokenCount": 7}, "truncated": False}
    assert provider.read_answer(answer, {}) == ([[1.0, 2.0]], 7)


def test_only_the_key_of_a_service_account_is_a_credential():
    # Other kinds name programs and addresses from which a token is taken.
    other = json.dumps({"type": "external_account", "credential_source": {"executable": {"command": "/bin/sh"}}})
    for credential in (other, "no json", "[]"):
        with pytest.raises(InvalidInput, match="no JSON key of a service account"):
            check_spec(ModelSpec("v", "vertex", "text-embedding-005", 768, 2048, credential=credential, parameters={"project": "ours"}))


class Answered:
    def __init__(self, status: int) -> None:
        self.status, self.headers = status, {}


def test_a_key_that_is_none_is_a_refused_credential_though_the_status_is_400():
    body = google_error(400, "API key not valid. Please pass a valid API key.")
    error = google_refusal(gemini(), Answered(400), body)
    assert isinstance(error, PermanentProviderError)
    assert error.extra["upstream_status"] == 401


def test_how_long_to_wait_stands_in_the_body():
    body = google_error(429, "Quota exceeded for requests per minute.")
    body["error"]["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    error = google_refusal(gemini(), Answered(429), body)
    assert isinstance(error, TransientProviderError)
    assert error.retry_after == 34.5
