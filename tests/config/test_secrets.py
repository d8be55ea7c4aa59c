import base64
import json

import pytest
from django.test import override_settings

from config import secrets
from config.errors import InvalidInput, LecternError

OLD, NEW = "o" * 40, "n" * 40


@pytest.fixture(autouse=True)
def keys(variables):
    with override_settings(SECRET_KEY=NEW):
        yield


@pytest.mark.parametrize("value", ["", "sk-123", "ключ\n", "x" * 100_000])
def test_a_value_comes_back(value):
    token = secrets.encrypt(value)
    assert secrets.decrypt(token) == value
    assert secrets.decrypt(memoryview(token)) == value
    assert token != secrets.encrypt(value)
    assert not value or value.encode() not in token


def test_an_earlier_key_still_reads_and_rotate_writes_with_the_current_one(variables):
    with override_settings(SECRET_KEY=OLD):
        token = secrets.encrypt("value")
    with pytest.raises(LecternError, match="LECTERN_SECRET_KEY_PREVIOUS"):
        secrets.decrypt(token)
    variables(LECTERN_SECRET_KEY_PREVIOUS=f"other,{OLD}")
    rotated = secrets.rotate(token)
    variables(LECTERN_SECRET_KEY_PREVIOUS="")
    assert secrets.decrypt(rotated) == "value"


def test_references_are_found_at_any_depth():
    document = {
        "a": "${secret:ONE}",
        "b": [{"c": "Bearer ${secret:two.x-1} ${secret:ONE}"}],
        "d": 3,
        "${secret:key}": None,
        "e": "$secret:no {secret:no}",
    }
    assert secrets.references(document) == {"ONE", "two.x-1"}


@pytest.mark.parametrize(
    "text", ["${secret:}", "${secret:a b}", "${secret:1x}", "${secret:open", "${secret:" + "x" * 101 + "}", "${secret:${secret:a}}"]
)
def test_a_reference_that_is_not_well_formed_is_refused(text):
    with pytest.raises(InvalidInput, match="not well formed"):
        secrets.references({"a": [text]})
    with pytest.raises(InvalidInput, match="not well formed"):
        secrets.resolve(text, lambda name: "value")


def test_resolving_changes_texts_only_and_once():
    store = {"ONE": "1", "TWO": "${secret:ONE}"}
    document = {"a": "x${secret:ONE}y${secret:ONE}", "b": ["${secret:TWO}", 3, None, True], "c": ("${secret:ONE}",)}
    assert secrets.resolve(document, store.__getitem__) == {"a": "x1y1", "b": ["${secret:ONE}", 3, None, True], "c": ("1",)}
    assert document["a"] == "x${secret:ONE}y${secret:ONE}"


@pytest.mark.parametrize("lookup", [{"B": "hidden"}.__getitem__, {"B": "hidden"}.get])
def test_an_unknown_name_is_told_and_no_value_is(lookup):
    with pytest.raises(InvalidInput, match="'A'") as caught:
        secrets.resolve(["${secret:B}", "${secret:A}"], lookup)
    assert "hidden" not in str(caught.value)


def test_redaction_knows_the_spellings_of_a_value():
    value = 'a"b/c d+é'
    text = f"{value} {json.dumps(value)} a%22b%2Fc%20d%2B%C3%A9 a%22b%2Fc+d%2B%C3%A9 {base64.b64encode(value.encode()).decode()} plain"
    redacted = secrets.redact(text, [value, "", "abc"])
    assert redacted == '[secret] "[secret]" [secret] [secret] [secret] plain'


def test_redaction_takes_the_longest_value_first():
    assert secrets.redact("long-secret-value", ["long-secret", "long-secret-value"]) == "[secret]"
