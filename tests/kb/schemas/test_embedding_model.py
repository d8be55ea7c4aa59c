"""Registering an embedding model: what a provider would ignore is refused."""

from typing import Any

import pytest

from config.addresses import parse_networks
from config.errors import InvalidInput
from config.secrets import SECRET_NAME, SECRET_REFERENCE
from kb.providers.base import ModelSpec
from kb.providers.hashing import HashingProvider
from kb.providers.local.provider import LocalProvider
from kb.providers.openai import OpenAIProvider
from kb.schemas import Rules, dump, load_embedding_model
from kb.schemas.embedding_model import DIMENSIONS
from kb.schemas.parameters import REFERENCE, is_endpoint_like, is_secret_key
from kb.schemas.providers import PROVIDERS

ALL = Rules(known_providers=frozenset(PROVIDERS))
LOCAL = {"name": "mini", "provider": "local", "model": "all-MiniLM-L6-v2", "dimension": 384, "max_input_tokens": 256}
OPENAI = {
    "name": "small",
    "provider": "openai",
    "model": "text-embedding-3-small",
    "dimension": 1536,
    "max_input_tokens": 8191,
    "credential": "OPENAI",
}


def refusal(values: dict[str, Any], rules: Rules = ALL) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        load_embedding_model(values, rules=rules)
    return caught.value.extra["errors"][0]


def test_defaults() -> None:
    assert dump(load_embedding_model(LOCAL)) == {
        **LOCAL,
        "endpoint": None,
        "credential": None,
        "parameters": {},
        "query_prefix": "",
        "document_prefix": "",
        "is_default": False,
        "vector_index": "halfvec",
        "price_per_million_tokens": None,
    }


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_dimensions_with_a_table(dimension: int) -> None:
    assert load_embedding_model({**LOCAL, "dimension": dimension}).dimension == dimension


@pytest.mark.parametrize("dimension", [0, -1, 1, 383, 1000, 4096, 10**30])
def test_other_dimensions_name_the_parameter(dimension: int) -> None:
    error = refusal({**OPENAI, "dimension": dimension})
    assert error["path"] == "dimension"
    assert "parameters.dimensions" in error["message"]
    assert "`dimensions` parameter" in refusal({**LOCAL, "dimension": dimension})["message"]


@pytest.mark.parametrize(
    ("change", "path", "said"),
    [
        ({"provider": "gemini"}, "provider", "not available yet"),
        ({"provider": "acme"}, "provider", "is not known"),
        ({"name": " "}, "name", "1 to 200"),
        ({"name": "x" * 101}, "name", "at most 100"),
        ({"model": ""}, "model", "at least 1"),
        ({"dimension": "1536"}, "dimension", "whole number"),
        ({"max_input_tokens": 0}, "max_input_tokens", "at least 8"),
        ({"credential": None}, "credential", "is required"),
        ({"credential": "sk-abcdefghijklmnopqrstuvwxyz0123456789"}, "credential", "not the key itself"),
        ({"credential": "a key with spaces"}, "credential", "name of a secret"),
        ({"endpoint": "api.example.com"}, "endpoint", "http://"),
        ({"endpoint": "https://u:p@api.example.com"}, "endpoint", "password"),
        ({"endpoint": "http://10.0.0.5:8000/v1"}, "endpoint", "private"),
        ({"parameters": {"dimensions": 512}}, "parameters", "Make them equal"),
        ({"parameters": {"timeuot": 5}}, "parameters", "Did you mean 'timeout'"),
        ({"parameters": {"timeout": [5]}}, "parameters.timeout", "text, a number"),
        ({"parameters": {"tokenizer": "${secret:KEY}"}}, "parameters", "does not take a secret"),
        ({"price_per_million_tokens": -0.1}, "price_per_million_tokens", "at least 0"),
        ({"is_default": 1}, "is_default", "true or false"),
        ({"query_prefix": "a\x00"}, "query_prefix", "U+0000"),
        ({"prefix": "x"}, "prefix", "Known here"),
    ],
)
def test_refused(change: dict[str, Any], path: str, said: str) -> None:
    error = refusal({**OPENAI, **change}, Rules())
    assert error["path"].startswith(path)
    assert said in error["message"]


@pytest.mark.parametrize(
    "key", ["base_url", "baseUrl", "BASE_URL", "base-url", "endpoint", "url", "serverUrl", "host", "api_base", "apiBase", "azure_endpoint"]
)
@pytest.mark.parametrize("model", [LOCAL, OPENAI])
def test_an_address_that_would_be_ignored(key: str, model: dict[str, Any]) -> None:
    message = refusal({**model, "parameters": {key: "https://private.example/v1"}})["message"]
    assert "would be ignored" in message
    assert ("`endpoint`" in message) is (model is OPENAI)


@pytest.mark.parametrize(
    ("key", "secret", "address"),
    [
        ("api_key", True, False),
        ("apiKey", True, False),
        ("key", True, False),
        ("password", True, False),
        ("accessToken", True, False),
        ("client_secret", True, False),
        ("connection_string", True, False),
        ("tokenizer", False, False),
        ("batch_tokens", False, False),
        ("keep_alive", False, False),
        ("use_tls", False, False),
        ("host", False, True),
        ("server_url", False, True),
        ("database_name", False, False),
    ],
)
def test_what_a_key_is(key: str, secret: bool, address: bool) -> None:
    assert (is_secret_key(key), is_endpoint_like(key)) == (secret, address)


def test_local_takes_neither_address_nor_key() -> None:
    assert "would be ignored" in refusal({**LOCAL, "endpoint": "https://a.example"})["message"]
    assert "is not used" in refusal({**LOCAL, "credential": "KEY"})["message"]


def test_a_server_of_ones_own_needs_no_key() -> None:
    values = {**OPENAI, "credential": None, "endpoint": "http://192.168.0.9:8000/v1"}
    assert refusal(values)["path"] == "endpoint"
    assert load_embedding_model(values, rules=Rules(trusted=True)).credential is None
    load_embedding_model(values, rules=Rules(allowed_networks=parse_networks("192.168.0.0/24:8000")))


def test_a_credential_may_be_written_as_a_reference() -> None:
    assert load_embedding_model({**OPENAI, "credential": "${secret:OPENAI}"}).credential == "OPENAI"


def test_prefixes_keep_their_spaces() -> None:
    assert load_embedding_model({**LOCAL, "query_prefix": "query: "}).query_prefix == "query: "


@pytest.mark.parametrize(
    ("provider", "missing"), [("azure-openai", "endpoint"), ("mistral", "credential"), ("vertex", "parameters"), ("voyage", "credential")]
)
def test_what_a_provider_cannot_do_without(provider: str, missing: str) -> None:
    assert refusal({**OPENAI, "provider": provider, "credential": None})["path"] == missing


def test_secrets_are_spelled_as_where_they_are_resolved() -> None:
    assert REFERENCE.pattern == SECRET_REFERENCE.pattern
    for name in ("OPENAI", "a.b-c", "_x", "1x", "x" * 101):
        accepted = SECRET_NAME.fullmatch(name) is not None
        assert (REFERENCE.fullmatch(f"${{secret:{name}}}") is not None) is accepted


@pytest.mark.parametrize(("name", "provider"), [("local", LocalProvider), ("openai", OpenAIProvider), ("hashing", HashingProvider)])
def test_the_schema_takes_what_the_provider_takes(name: str, provider: Any) -> None:
    def takes(key: str) -> bool:
        values = {"backend": "torch" if key == "device" else "openvino", "precision": "f32", "dimensions": 384}
        spec = ModelSpec(
            name="m",
            provider=name,
            model="m",
            dimension=384,
            max_input_tokens=256,
            parameters={key: values.get(key, 1)} | ({"backend": "torch"} if key == "device" else {}),
        )
        try:
            provider.check(spec)
        except InvalidInput as error:
            if "no parameter" not in str(error):
                raise
            return False
        return True

    everything = frozenset().union(*(rules.parameters for rules in PROVIDERS.values())) | {"base_url", "path"}
    assert {key for key in everything if takes(key)} == PROVIDERS[name].parameters
