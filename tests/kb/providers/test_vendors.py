"""What holds for every provider that calls a server, each against a server that speaks its vendor's wire format."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from config.addresses import AddressRefused
from config.errors import InvalidInput, PermanentProviderError, TransientProviderError
from kb.providers import check_spec, load_provider
from kb.providers.base import ModelSpec, Role, embed, embed_query
from kb.providers.hashing import hash_vector
from kb.schemas.providers import PROVIDERS
from tests.servers.openai_server import Answer
from tests.servers.vendor_server import VendorServer
from tests.servers.vendors import VENDORS

TEXTS = ["the first text", "a second one", "日本語 text", "number four"]
several = pytest.mark.parametrize("vendor", [name for name, vendor in VENDORS.items() if vendor.several], indirect=True)


@cache
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


@pytest.fixture(params=VENDORS)
def vendor(request) -> str:
    return request.param


@pytest.fixture
def server(vendor: str) -> Iterator[VendorServer]:
    with VendorServer(vendor) as running:
        yield running


@pytest.fixture
def spec(vendor: str, server: VendorServer) -> ModelSpec:
    return spec_for(vendor, server)


def spec_for(name: str, server: VendorServer, **changes) -> ModelSpec:
    vendor = VENDORS[name]
    account = {
        "type": "service_account",
        "client_email": "us@ours.test",
        "private_key": private_key(),
        "token_uri": f"{server.origin}/token",
    }
    credential = vendor.credential or json.dumps(account)
    made = ModelSpec("remote", name, vendor.model, 384, 8000, server.endpoint, credential, vendor.parameters, trusted=True)
    return replace(made, **changes)


def run(spec: ModelSpec, role: Role = Role.DOCUMENT, texts: list[str] = TEXTS):
    with closing(load_provider(spec)) as provider:
        return embed(provider, spec, texts, role)


def test_there_is_a_server_for_each_provider_that_calls_one():
    assert set(PROVIDERS) - set(VENDORS) == {"local", "hashing"}


def test_each_text_gets_its_own_vector_and_its_tokens_are_counted(vendor, server, spec):
    answer = run(spec)
    np.testing.assert_allclose(answer.vectors, [hash_vector(text, 384) for text in TEXTS], atol=1e-6)
    assert answer.tokens >= sum(len(text.split()) for text in TEXTS)
    assert len(server.asked) == (1 if VENDORS[vendor].several else len(TEXTS))
    assert {asked.role for asked in server.asked} == {VENDORS[vendor].roles[0]}
    assert {asked.dimension for asked in server.asked} == {None}
    assert all(headers["user-agent"].startswith("Lectern/") for headers in server.headers)


def test_the_role_is_said_where_the_vendor_knows_it_and_nowhere_else(vendor, server, spec):
    with closing(load_provider(spec)) as provider:
        answer = embed_query(provider, replace(spec, query_prefix="query: "), "what is it?")
    np.testing.assert_allclose(answer.vectors[0], hash_vector("query: what is it?", 384), atol=1e-6)
    assert [asked.role for asked in server.asked] == [VENDORS[vendor].roles[1]]


def test_a_shorter_dimension_is_asked_for_in_the_vendors_words(server, spec):
    small = replace(spec, dimension=256, parameters={**spec.parameters, "dimensions": 256})
    assert run(small).vectors.shape == (4, 256)
    assert {asked.dimension for asked in server.asked} == {256}
    with pytest.raises(InvalidInput, match="Make them equal"):
        check_spec(replace(small, dimension=384))


def test_an_answer_in_another_order_is_put_right_by_its_index(vendor, server, spec):
    if not VENDORS[vendor].has_index:
        pytest.skip("its answers have no index")
    server.answer_next(Answer(shuffled=True))
    np.testing.assert_allclose(run(spec).vectors, [hash_vector(text, 384) for text in TEXTS], atol=1e-6)


@several
def test_an_answer_that_is_short_is_refused_whole(server, spec):
    server.answer_next(Answer(missing=1))
    with pytest.raises(PermanentProviderError, match="given 4 texts and answered with 3"):
        run(spec)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(dimension=128), "vectors of 128 numbers and is registered with 384"),
        (Answer(not_a_number=True), "not finite"),
        (Answer(body="{}"), "form of an embeddings endpoint"),
        (Answer(body="[]"), "form of an embeddings endpoint"),
        (Answer(body="<html>a page</html>", content_type="text/html"), "form of an embeddings endpoint"),
        (Answer(body=" " * 40_000_000), "33,554,432 bytes"),
        (Answer(status=401, message="no such key"), "refuses the credential"),
        (Answer(status=403, message="not yours"), "refuses the credential"),
        (Answer(status=404, message="no such model"), "Check the model name"),
        (Answer(status=400, message="what is this?"), "what is this\\?"),
        (Answer(status=422, message="what is this?"), "what is this\\?"),
        (Answer(status=400, message="too many tokens: 9000"), "max_input_tokens"),
        (Answer(status=302), "redirect"),
    ],
)
def test_failures_that_stay_are_said_in_words(server, spec, answer, message):
    server.answer_next(answer)
    with pytest.raises(PermanentProviderError, match=message) as caught:
        run(spec, texts=["one text"])
    assert spec.credential not in str(caught.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (Answer(status=429, retry_after=7), 7.0),
        (Answer(status=429), None),
        (Answer(status=503, retry_after=3), 3.0),
        (Answer(status=500), None),
    ],
)
def test_failures_that_pass_are_not_repeated_here(server, spec, answer, wait):
    server.answer_next(answer)
    with pytest.raises(TransientProviderError) as caught:
        run(spec, texts=["one text"])
    assert caught.value.retry_after == wait
    assert len(server.asked) == 1


def test_a_slow_server_is_a_passing_failure(server, spec):
    hasty = replace(spec, parameters={**spec.parameters, "timeout": 0.3})
    server.answer_next(Answer(delay=0.9))
    with pytest.raises(TransientProviderError, match="in time"):
        run(hasty, texts=["one text"])


def test_a_private_address_is_refused_for_an_endpoint_that_is_not_trusted(server, spec):
    with pytest.raises(AddressRefused):
        run(replace(spec, trusted=False))
    assert server.asked == []
    assert server.tokens_given == 0


def test_a_wrong_credential_is_refused_by_the_server_itself(vendor, server, spec):
    if vendor == "ollama":
        pytest.skip("it has no credentials")
    wrong = {"bedrock": "AKIDOFOTHERS:x", "vertex": spec.credential.replace("us@ours.test", "others@ours.test")}.get(vendor, "another")
    with pytest.raises(PermanentProviderError, match="credential"):
        run(replace(spec, credential=wrong))
    assert server.asked == []


def test_a_text_that_cannot_be_written_is_sent_as_near_as_may_be(server, spec):
    run(spec, texts=["a\ud800b", ""])
    assert [text for asked in server.asked for text in asked.texts] == ["a?b", " "]


@pytest.mark.parametrize("key", ["base_url", "api_base", "host", "server_url"])
def test_an_address_under_another_name_is_refused(spec, key):
    with pytest.raises(InvalidInput, match=f"no parameter {key}"):
        check_spec(replace(spec, parameters={**spec.parameters, key: "https://elsewhere.test"}))


@pytest.mark.parametrize("vendor", ["bedrock", "vertex"], indirect=True)
def test_the_identity_of_this_server_is_not_lent(spec):
    with pytest.raises(InvalidInput, match="only for models that an operator registers"):
        check_spec(replace(spec, credential=None, trusted=False))
    check_spec(replace(spec, credential=None))
