from typing import Any

import pytest

from config.errors import InvalidInput
from kb.schemas import dump, load


def declared(metadata: Any) -> Any:
    return dump(load({"name": "kb", "metadata": metadata}, strict=True))["metadata"]


def test_a_type_alone_is_short_for_a_field() -> None:
    assert declared({"year": "number", "due": {"type": "date", "description": "When it ends."}}) == {
        "year": {"type": "number", "description": ""},
        "due": {"type": "date", "description": "When it ends."},
    }


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"year": "int"}, "metadata.year.type"),
        ({"year": {"kind": "number"}}, "metadata.year"),
        ({"": "text"}, "metadata"),
        ({"x" * 201: "text"}, "metadata"),
        ({f"k{number}": "text" for number in range(201)}, "metadata"),
        (["year"], "metadata"),
    ],
)
def test_what_is_no_declaration(metadata: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        declared(metadata)
    assert caught.value.extra["errors"][0]["path"].startswith(said)
