"""The JSON Schema and the reference page follow the models."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kb.schemas.base import Document
from kb.schemas.describe import describe, embedding_model_schema, json_schema
from kb.schemas.languages import NAMES, check_language, language_code
from kb.words.languages import CODES

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def models(kind: type[BaseModel] = Document) -> list[type[BaseModel]]:
    return [found for child in kind.__subclasses__() if child.__module__.startswith("kb.schemas.") for found in (child, *models(child))]


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == describe(), "docs/configuration.md is out of date: run `python -m kb.schemas.describe > docs/configuration.md`"


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_every_field_is_described(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        assert field.description, name
        assert f"{field.alias or name}`" in describe()


def test_the_schema_is_that_of_the_written_document() -> None:
    schema = json_schema()
    assert schema["required"] == ["name"]
    assert list(schema["properties"])[:2] == ["schema", "name"]
    assert schema["additionalProperties"] is False
    definitions = schema["$defs"]
    assert definitions["Source"]["required"] == ["name"]
    assert definitions["Chunking"]["properties"]["target_tokens"]["anyOf"][1] == {"type": "integer", "minimum": 32, "maximum": 8000}
    assert definitions["RetrievalSettings"]["properties"]["min_score"]["anyOf"][1] == {"type": "number", "minimum": 0, "maximum": 1}
    assert embedding_model_schema()["properties"]["dimension"]["enum"]


def test_references_inside_the_schema_resolve() -> None:
    schema = json_schema()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                assert value["$ref"].removeprefix("#/$defs/") in schema["$defs"]
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(schema)


def test_languages_of_the_word_index_can_be_chosen() -> None:
    for code, name in CODES.items():
        assert check_language(code) == code
        assert check_language(name.title()) == name
        assert CODES[language_code(name) or ""] == name
    assert language_code("norwegian") == "no"
    assert language_code("auto") is None
    assert language_code("zh") == "zh"
    assert NAMES["en"] == "english"
