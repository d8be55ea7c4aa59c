"""How the API describes itself: pydantic models in `@extend_schema(request=…, responses=…)`, pages, and the errors of every operation."""

import re
from typing import Any, Generic, TypeVar

from drf_spectacular.drainage import set_override, warn
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import GenerateJsonSchema

from config.paging import DEFAULT_LIMIT, MAX_LIMIT

T = TypeVar("T")

_GENERIC = re.compile(r"^(\w+)\[(\w+)\]$")


class Fault(BaseModel):
    """One place that is wrong."""

    path: str = Field(description="`sources[0].web.max_pages`; empty for the whole.")
    message: str


class Problem(BaseModel):
    """Problem details (RFC 9457), of every answer that is not a success."""

    model_config = ConfigDict(extra="allow")

    type: str = "about:blank"
    title: str
    status: int
    code: str = Field(description="Stable, for programs.")
    detail: str = Field(description="What happened and what to do, for people.")
    errors: list[Fault] | None = Field(default=None, description="Each place that is wrong, where there are several.")


class Paged(BaseModel, Generic[T]):
    """One page of a list; `Paged[Thing]` is named ThingPage."""

    items: list[T]
    next_cursor: str | None = Field(description="The `cursor` of the next page; null on the last one.")


def query(name: str, description: str, kind: Any = str, *, required: bool = False, **values: Any) -> OpenApiParameter:
    """A query parameter of `@extend_schema(parameters=[…])`."""
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, required=required, description=description, **values)


def header(name: str, description: str, *, required: bool = False) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, OpenApiParameter.HEADER, required=required, description=description)


PAGE_PARAMETERS = [
    query("cursor", "`next_cursor` of the page before."),
    query("limit", f"Most items of one page, 1 to {MAX_LIMIT}.", int, default=DEFAULT_LIMIT),
]
IDEMPOTENCY_KEY = header("Idempotency-Key", "The same key with the same body gives the first answer again, for a day.")
ORGANIZATION = header("X-Lectern-Organization", "Which organization, for a signed-in person who belongs to several.")


class Answered(GenerateJsonSchema):
    """Of an answer, which holds every field, also those that have a default."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        if field["type"] == "typed-dict-field":
            return super().field_is_required(field, total)
        return not field.get("serialization_exclude")


class PydanticModels(OpenApiSerializerExtension):
    """What is sent may leave defaults out, what is answered has every key: a model used both ways becomes two components."""

    target_class = "pydantic.BaseModel"
    match_subclasses = True
    priority = 1  # before the library's own, which knows one form only

    def get_name(self, auto_schema: AutoSchema, direction: str) -> str:
        set_override(self.target, "many", False)
        # The library compares classes, of which a part of another model has none here; what differs is told below.
        set_override(self.target, "suppress_collision_warning", True)
        name = self.target.__name__
        parts = _GENERIC.match(name)
        name = f"{parts[2]}{'Page' if parts[1] == 'Paged' else parts[1]}" if parts else name
        known = auto_schema.registry.__dict__.setdefault("pydantic_models", {}).setdefault(name, self.target)
        if known is not self.target:
            warn(f"Two models are named {name}: {known.__module__} and {self.target.__module__}. Rename one.")
        return name

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        sent = direction == "request"
        suffix = "Request" if sent else ""
        mode: Any = "validation" if sent else "serialization"
        generator = GenerateJsonSchema if sent or self.target is Problem else Answered
        template = f"#/components/schemas/{{model}}{suffix}"
        schema = self.target.model_json_schema(ref_template=template, mode=mode, schema_generator=generator)
        parts = schema.pop("$defs", {})
        if set(schema) == {"$ref"}:  # a model that refers to itself
            schema = parts.pop(self.target.__name__)
        for name, part in parts.items():
            component = ResolvedComponent(name=f"{name}{suffix}", type=ResolvedComponent.SCHEMA, object=self.target, schema=part)
            auto_schema.registry.register_on_missing(component)
            known = auto_schema.registry[component].schema
            if known is not None and known != part:
                warn(f"Two models are named {name}, and one is a part of {self.target.__name__}. Rename one.")
        return schema


class Schema(AutoSchema):
    """The description of one operation, with the form of its errors."""

    def _is_list_view(self, serializer: Any = None) -> bool:
        answer = self.get_response_serializers() if serializer is None else serializer
        if isinstance(answer, dict) and answer:
            answer = answer[min(answer, key=str)]
        if isinstance(answer, type) and issubclass(answer, BaseModel):
            return answer.__name__.startswith("Paged[")
        return bool(super()._is_list_view(serializer))

    def _get_response_bodies(self, direction: str = "response") -> dict[str, Any]:
        problem = self.resolve_serializer(Problem, "response").ref
        failed = {"description": "What went wrong, and what to do.", "content": {"application/problem+json": {"schema": problem}}}
        return {**super()._get_response_bodies(direction), "default": failed}
