import json

import pytest

from config.errors import InvalidInput
from config.registry import Registry


def test_an_entry_is_imported_when_asked_for():
    registry = Registry(
        "codec", {"json": "json:dumps", "deep": "json:JSONDecoder.decode", "dotted": "json.loads", "broken": "no.such.module:x"}
    )
    assert registry.names() == ["broken", "deep", "dotted", "json"]
    assert registry.load("json") is json.dumps
    assert registry.load("deep") is json.JSONDecoder.decode
    assert registry.load("dotted") is json.loads
    assert "json" in registry
    assert list(registry) == registry.names()


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InvalidInput, match=r"no codec named 'xml'. Known: json") as caught:
        Registry("codec", {"json": "json:dumps"}).load("xml")
    assert caught.value.extra == {"known": ["json"]}


@pytest.mark.parametrize("path", ["no.such.module:x", "json:absent", "json", ":x"])
def test_a_path_that_does_not_import_names_its_entry(path):
    with pytest.raises(ImportError, match="codec 'bad'"):
        Registry("codec", {"bad": path}).load("bad")
