"""Where vectors live: what a store's parameters must say."""

from typing import Any

import pytest

from config.addresses import parse_networks
from config.errors import InvalidInput
from kb.schemas import Rules, load
from kb.schemas.store import Store

RULES = Rules(known_stores=frozenset({"qdrant", "chroma"}), missing_stores={"memory": "It is for tests."})


def refusal(store: dict[str, Any]) -> str:
    with pytest.raises(InvalidInput) as caught:
        load({"name": "kb", "store": store}, strict=True, rules=RULES)
    return caught.value.extra["errors"][0]["message"]


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ({"type": "qdrant"}, "needs 'host'"),
        ({"type": "qdrant", "parameters": {"host": "https://q.example.com"}}, "'host' must be a name"),
        ({"type": "qdrant", "parameters": {"host": "127.0.0.1"}}, "'host' cannot be used"),
        ({"type": "qdrant", "parameters": {"host": "::1"}}, "'host' cannot be used"),
        ({"type": "qdrant", "parameters": {"host": "q.example.com", "port": "6333"}}, "'port' must be a number"),
        ({"type": "qdrant", "parameters": {"host": "q.example.com", "use_tls": "yes"}}, "'use_tls' must be true or false"),
        ({"type": "qdrant", "parameters": {"host": "q.example.com", "collection_name": "a/b"}}, "'collection_name' must be"),
        ({"type": "chroma"}, "needs 'base_url'"),
        ({"type": "chroma", "parameters": {"base_url": "c.example.com"}}, "'base_url' must start with http"),
        ({"type": "chroma", "parameters": {"base_url": "https://me:pw@c.example.com"}}, "'base_url' holds a user name"),
        ({"type": "chroma", "parameters": {"base_url": "https://c.example.com/?token=1"}}, "'base_url' must be an address without a query"),
        ({"type": "chroma", "parameters": {"base_url": "http://169.254.169.254"}}, "'base_url' cannot be used"),
    ],
)
def test_where_a_store_is(store, said) -> None:
    assert said in refusal(store)


def test_a_private_server_that_the_operator_opened() -> None:
    rules = Rules(known_stores=RULES.known_stores, allowed_networks=parse_networks("127.0.0.1/32:6333"))
    for port, taken in ((6333, True), (6334, False)):
        store = {"type": "qdrant", "parameters": {"host": "127.0.0.1", "port": port}}
        if taken:
            assert load({"name": "kb", "store": store}, strict=True, rules=rules).store.parameters["port"] == port
        else:
            with pytest.raises(InvalidInput):
                load({"name": "kb", "store": store}, strict=True, rules=rules)


def test_a_store_that_cannot_be_used_here_says_why() -> None:
    said = refusal({"type": "memory"})
    assert "'memory' cannot be used here. It is for tests." in said
    assert "Available: chroma, qdrant." in said


def test_keys_and_encryption_do_not_say_where_points_are() -> None:
    parameters = {"host": "q.example.com", "collection_name": "docs"}
    plain = Store.model_validate({"type": "qdrant", "parameters": parameters}, context=RULES)
    keyed = Store.model_validate({"type": "qdrant", "parameters": {**parameters, "api_key": "${secret:Q}", "use_tls": True}}, context=RULES)
    other = Store.model_validate({"type": "qdrant", "parameters": {**parameters, "collection_name": "more"}}, context=RULES)
    assert plain.identity == keyed.identity != other.identity
