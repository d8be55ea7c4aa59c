"""Validation errors as a person reads them: the place by name, and what to do."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from kb.schemas.base import Document

_MOST_ERRORS = 50

_MESSAGES = {
    "missing": "is required.",
    "string_type": "must be text.",
    "int_type": "must be a whole number.",
    "int_from_float": "must be a whole number.",
    "float_type": "must be a number.",
    "finite_number": "must be a finite number.",
    "bool_type": "must be true or false.",
    "list_type": "must be a list.",
    "dict_type": "must be an object.",
    "model_type": "must be an object.",
    "model_attributes_type": "must be an object.",
    "string_unicode": "holds a lone surrogate, which is not a character. Send valid UTF-8.",
    "greater_than_equal": "must be at least {ge}.",
    "greater_than": "must be more than {gt}.",
    "less_than_equal": "must be at most {le}.",
    "less_than": "must be less than {lt}.",
    "string_too_long": "must have at most {max_length} characters.",
    "string_too_short": "must have at least {min_length} characters.",
    "too_long": "must have at most {max_length} entries; it has {actual_length}.",
    "literal_error": "must be one of: {expected}.",
}


def explain(exc: ValidationError, document: Any = None) -> list[dict[str, str]]:
    """`[{path, message}]`, one per place. With the validated document at hand, list entries are named: `sources[handbooks].cron`.
    Values are never repeated from the input, except names and what our own rules quote."""
    kind = _kinds().get(exc.title)
    problems: list[dict[str, str]] = []
    for error in exc.errors(include_url=False, include_input=False):
        location = error["loc"]
        unknown = error["type"] == "extra_forbidden"
        message = _unknown_key(str(location[-1]), _model_at(kind, location[:-1])) if unknown else _message(error)
        problem = {"path": path_of(location, document), "message": message}
        if problem not in problems:
            problems.append(problem)
    return problems[:_MOST_ERRORS]


def path_of(location: Sequence[int | str], document: Any = None) -> str:
    path, value = "", document
    for part in location:
        if isinstance(part, int):
            value = value[part] if isinstance(value, Sequence) and not isinstance(value, str) and part < len(value) else None
            name = value.get("name") if isinstance(value, Mapping) else None
            path += f"[{_printable(name.strip()) if isinstance(name, str) and name.strip() else part}]"
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
            path += f".{_printable(part)}" if path else _printable(part)
    return path


def _message(error: Any) -> str:
    context = error.get("ctx", {})
    if error["type"] == "value_error":
        return str(context.get("error", error["msg"]))
    template = _MESSAGES.get(error["type"])
    return template.format(**context) if template else f"{error['msg']}."


def _unknown_key(key: str, model: type[BaseModel] | None) -> str:
    if model is None:
        return "is not a known key. Remove it."
    known = [field.alias or name for name, field in model.model_fields.items()]
    near = get_close_matches(key, known, n=1)
    guess = f"Did you mean '{near[0]}'? " if near else ""
    return f"is not a known key. {guess}Known here: {', '.join(known)}."


def _kinds() -> dict[str, type[BaseModel]]:
    found: dict[str, type[BaseModel]] = {}
    waiting = [Document]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            found[kind.__name__] = kind
            waiting.append(kind)
    return found


def _model_at(model: type[BaseModel] | None, location: Sequence[int | str]) -> type[BaseModel] | None:
    for part in location:
        if model is None or isinstance(part, int):
            continue
        field = next((field for name, field in model.model_fields.items() if part in (name, field.alias)), None)
        model = _model_in(field.annotation) if field else None
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for argument in get_args(annotation) if (found := _model_in(argument))), None)


def _printable(text: str) -> str:
    shown = text[:100].encode("utf-8", "backslashreplace").decode()
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in shown)
