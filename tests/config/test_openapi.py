"""The description of the API: complete, valid, and of what is really taken and answered."""

import io

import pytest
from django.core.management import call_command
from django.urls import get_resolver

yaml = pytest.importorskip("yaml", reason="drf-spectacular brings PyYAML")


@pytest.fixture(scope="module")
def schema() -> dict:
    written = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=written)
    return yaml.safe_load(written.getvalue())


def test_it_is_valid_and_says_3_1(schema):
    assert schema["openapi"] == "3.1.0"


def test_every_operation_says_how_it_fails(schema):
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert "default" in operation["responses"], (method, path)


def test_what_is_sent_may_leave_defaults_out_and_what_is_answered_has_all(schema):
    sent, answered = (schema["components"]["schemas"][name] for name in ("KnowledgeBaseDocumentRequest", "KnowledgeBaseDocument"))
    assert sent["required"] == ["name"]
    assert set(answered["required"]) == set(answered["properties"])


def test_a_page_is_an_object_with_items(schema):
    page = schema["components"]["schemas"]["DescriptorPage"]
    assert page["properties"]["items"]["items"] == {"$ref": "#/components/schemas/Descriptor"}


def test_every_route_is_described(schema):
    routes = {f"/{pattern}" for pattern in _routes(get_resolver().url_patterns) if pattern.startswith("api/v1/")}
    described = {path.replace("{", "<").replace("}", ">") for path in schema["paths"]}
    undocumented = {"/api/v1/schema", "/api/v1/docs"}
    assert {route.replace("<str:", "<").replace("<uuid:", "<").replace("<int:", "<") for route in routes} - described <= undocumented


def _routes(patterns, prefix: str = ""):
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from _routes(pattern.url_patterns, route)
        else:
            yield route
