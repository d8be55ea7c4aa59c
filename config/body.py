"""Request bodies: strict JSON in, a pydantic value out, every fault named by its path."""

import json
import math
from collections import Counter
from typing import Any, TypeVar

from django.http import HttpRequest
from pydantic import BaseModel, TypeAdapter, ValidationError
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request

from config.errors import InvalidInput, TooLarge

T = TypeVar("T")

MAX_DEPTH = 64
MAX_ERRORS = 50


def parse_body(request: Request | HttpRequest, schema: type[T], *, max_bytes: int | None = None) -> T:
    """The body as `schema` (a pydantic model or any type that pydantic knows). Keys that the schema does not name are refused
    unless its own configuration says otherwise."""
    content_type = (getattr(request, "content_type", "") or "").partition(";")[0].strip().lower()
    if content_type and content_type != "application/json" and not content_type.endswith("+json"):
        raise UnsupportedMediaType(content_type, detail=f"The body is {content_type[:80]}; send application/json.")
    body = request.body
    if max_bytes is not None and len(body) > max_bytes:
        raise TooLarge(f"The body has {len(body):,} bytes; at most {max_bytes:,} are taken. Send less.", max_bytes=max_bytes)
    return validate(parse_json(body), schema)


def validate(data: Any, schema: type[T], *, what: str = "The request") -> T:
    """Plain data as `schema`; InvalidInput with a list of {path, message}. Input values are never repeated: they may be secret."""
    try:
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            extra = None if "extra" in schema.model_config else "forbid"
            return schema.model_validate(data, extra=extra)
        return TypeAdapter(schema).validate_python(data)
    except ValidationError as error:
        raise invalid(error, what=what) from error


def invalid(error: ValidationError, *, what: str = "The request") -> InvalidInput:
    found = [{"path": path_of(entry["loc"]), "message": _message(entry)} for entry in error.errors(include_url=False, include_input=False)]
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    where = f" at {first['path']}" if first["path"] else ""
    return InvalidInput(f"{what} is not valid{where}: {first['message']}{more}.", errors=found[:MAX_ERRORS])


def path_of(location: tuple[int | str, ...]) -> str:
    """`sources[0].web.max_pages`"""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return printable(path)


def printable(text: str) -> str:
    """As a message may hold it: what cannot be encoded or printed is escaped, and it is cut."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:200])


def _message(entry: Any) -> str:
    if entry["type"] == "extra_forbidden":
        return "this key is not known; remove it or correct its name"
    if entry["type"] == "missing":
        return "this key is required"
    text = str(entry["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ").rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def parse_json(body: bytes) -> Any:
    """JSON that can be stored: valid UTF-8, no NUL characters, no lone surrogates, no NaN or Infinity, no key twice in an object,
    at most 64 levels. InvalidInput names the place."""
    if not body.strip():
        raise InvalidInput("The body is empty. Send a JSON document.")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The body is not valid UTF-8 (byte {error.start}). Send JSON encoded as UTF-8.") from None
    try:
        data = json.loads(text, object_pairs_hook=_pairs)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}. Correct it.") from None
    except RecursionError:
        raise InvalidInput(f"The body is nested deeper than {MAX_DEPTH} levels. Flatten it.") from None
    except ValueError:
        raise InvalidInput("The body holds a number with too many digits. Send it as text.") from None
    _check(data, (), 0)
    return data


class _Repeated(dict[str, Any]):
    """An object in which `key` stands twice; which object that is, only the walk knows."""

    key: str


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    repeated = _Repeated(plain)
    repeated.key = Counter(key for key, _ in pairs).most_common(1)[0][0]
    return repeated


def _check(value: Any, path: tuple[int | str, ...], depth: int) -> None:
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, float) and not math.isfinite(value):
        raise _refused(path, "NaN, Infinity and numbers too large for a double are not JSON numbers; send another number")
    elif isinstance(value, (dict, list)):
        if depth >= MAX_DEPTH:
            raise _refused(path[:8], f"it is nested deeper than {MAX_DEPTH} levels; flatten it")
        if isinstance(value, _Repeated):
            raise _refused((*path, value.key), "this key stands twice in its object; keep one")
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str):
                _check_text(key, (*path, key))
            _check(item, (*path, key), depth + 1)


def _check_text(text: str, path: tuple[int | str, ...]) -> None:
    if "\0" in text:
        raise _refused(path, "it holds a NUL character (\\u0000), which cannot be stored; remove it")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _refused(path, "it holds half of a surrogate pair, which is no character; send valid Unicode") from None


def _refused(path: tuple[int | str, ...], message: str) -> InvalidInput:
    where = path_of(path)
    at = f" at {where}" if where else ""
    return InvalidInput(f"The request is not valid{at}: {message}.", errors=[{"path": where, "message": message}])
