"""The families of models on Bedrock, and who a call comes from."""

import pytest

from config.errors import InvalidInput
from kb.providers import check_spec
from kb.providers.base import ModelSpec, Role
from kb.providers.bedrock import BedrockProvider


def spec(model: str, credential: str | None = "AKID:secret", **parameters) -> ModelSpec:
    return ModelSpec("b", "bedrock", model, 1024, 8000, credential=credential, parameters=parameters)


@pytest.mark.parametrize(
    ("model", "role", "dimensions", "body"),
    [
        ("amazon.titan-embed-text-v1", Role.QUERY, None, {"inputText": "a"}),
        ("us.amazon.titan-embed-text-v2:0", Role.DOCUMENT, 1024, {"inputText": "a", "dimensions": 1024}),
        (
            "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.cohere.embed-v4:0",
            Role.QUERY,
            1024,
            {"texts": ["a"], "input_type": "search_query", "truncate": "NONE", "embedding_types": ["float"], "output_dimension": 1024},
        ),
        (
            "amazon.nova-2-multimodal-embeddings-v1:0",
            Role.DOCUMENT,
            1024,
            {
                "taskType": "SINGLE_EMBEDDING",
                "singleEmbeddingParams": {
                    "embeddingPurpose": "GENERIC_INDEX",
                    "embeddingDimension": 1024,
                    "text": {"value": "a", "truncationMode": "NONE"},
                },
            },
        ),
    ],
)
def test_each_family_has_a_form_of_its_own(model, role, dimensions, body):
    made = spec(model, **({"dimensions": dimensions} if dimensions else {}))
    assert BedrockProvider(made).make_call(["a"], role).body == body


@pytest.mark.parametrize(
    ("model", "several", "answer"),
    [
        ("amazon.titan-embed-text-v2:0", False, {"embedding": [1.0]}),
        ("cohere.embed-english-v3", True, {"embeddings": [[1.0]], "id": "x", "response_type": "embeddings_floats"}),
        ("cohere.embed-v4:0", True, {"embeddings": {"float": [[1.0]]}, "response_type": "embeddings_by_type"}),
        ("amazon.nova-2-multimodal-embeddings-v1:0", False, {"embeddings": [{"embeddingType": "TEXT", "embedding": [1.0]}]}),
    ],
)
def test_where_the_vectors_stand(model, several, answer):
    provider = BedrockProvider(spec(model))
    assert provider.read_answer(answer, {"x-amzn-bedrock-input-token-count": "5"}) == ([[1.0]], 5)
    assert (provider.limits.max_texts > 1) is several


def test_the_address_holds_region_and_model():
    call = BedrockProvider(spec("amazon.titan-embed-text-v2:0", region="eu-central-1")).make_call(["a"], Role.QUERY)
    assert call.url == "https://bedrock-runtime.eu-central-1.amazonaws.com/model/amazon.titan-embed-text-v2%3A0/invoke"


def test_an_api_key_is_sent_as_it_is_and_a_temporary_key_with_its_token():
    with_key = BedrockProvider(spec("amazon.titan-embed-text-v2:0", "ABSKabc"))._signed("https://x.test/", b"{}", {})
    assert with_key == {"Authorization": "Bearer ABSKabc"}
    temporary = BedrockProvider(spec("amazon.titan-embed-text-v2:0", "ASIA:secret:to:ken"))._signed("https://x.test/", b"{}", {})
    assert temporary["X-Amz-Security-Token"] == "to:ken"


@pytest.mark.parametrize(
    ("model", "parameters", "message"),
    [
        ("amazon.titan-embed-text-v2:0", {"region": "evil.test/"}, "The parameter region"),
        ("meta.llama3", {}, "of no known family"),
    ],
)
def test_what_cannot_be_asked_is_refused(model, parameters, message):
    with pytest.raises(InvalidInput, match=message):
        check_spec(spec(model, **parameters))
