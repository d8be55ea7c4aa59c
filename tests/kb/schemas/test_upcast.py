"""Released documents load for ever, and lifting is step by step and pure."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from config.errors import InvalidInput
from kb.schemas import dump, load, load_stored
from kb.schemas.upcast import CURRENT, STEPS, upcast

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("number", range(1, CURRENT + 1))
def test_each_released_schema_loads(number: int) -> None:
    stored = json.loads((GOLDEN / f"knowledge_base_{number}.json").read_text(encoding="utf-8"))
    assert stored["schema"] == number
    document = load_stored(stored)
    assert document.schema_number == CURRENT
    assert [source.name for source in document.sources] == ["website", "handbooks"]
    assert dump(load_stored(dump(document))) == dump(document)


def test_the_current_golden_document_says_every_field() -> None:
    stored = json.loads((GOLDEN / f"knowledge_base_{CURRENT}.json").read_text(encoding="utf-8"))
    assert dump(load_stored(stored)) == stored


def test_every_step_up_to_the_current_schema_is_there() -> None:
    assert sorted(STEPS) == list(range(1, CURRENT))


def _rename(document: dict[str, Any]) -> dict[str, Any]:
    document["title"] = document.pop("name")
    return document


def _nest(document: dict[str, Any]) -> dict[str, Any]:
    return {"about": {"title": document["title"]}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"schema": 1, "name": "a"}, {"schema": 3, "about": {"title": "a"}}),
        ({"schema": 2, "title": "a"}, {"schema": 3, "about": {"title": "a"}}),
        ({"schema": 3, "about": {}}, {"schema": 3, "about": {}}),
        ({"about": {}}, {"schema": 3, "about": {}}),
    ],
)
def test_steps_are_taken_in_order_and_the_row_stays(document: dict[str, Any], expected: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    assert upcast(document, steps={1: _rename, 2: _nest}, current=3) == expected
    assert document == before


@pytest.mark.parametrize("number", [CURRENT + 1, 0, -1, True, "1", 1.0, None, []])
def test_a_number_that_is_none_of_ours(number: Any) -> None:
    with pytest.raises(InvalidInput, match="schema") as caught:
        load({"schema": number, "name": "kb"})
    assert caught.value.extra["errors"][0]["path"] == "schema"
