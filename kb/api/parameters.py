"""Query parameters, and ETag, If-Match and If-None-Match of versioned documents: the tag of a version is its number, quoted."""

import re
from collections.abc import Sequence

from rest_framework.request import Request

from config.errors import InvalidInput, PreconditionRequired

MAX_COMMENT = 1000
_TAG = re.compile(r'\s*(W/)?"([^"\x00-\x20\x7f]*)"\s*(?:,|$)')


def etag(number: int) -> str:
    return f'"{number}"'


def expected_version(request: Request, *, current: int) -> int:
    """The number that the author edited, from If-Match (a list counts as the current number if it holds it) or `?version=`.

    Weak tags count as strong ones: a proxy that compresses weakens them. Without either it is `PreconditionRequired`; `*` names no
    version, so it does not do."""
    numbers = _numbers(request.headers.get("If-Match"), "If-Match")
    if numbers is None and not request.query_params.get("version"):
        raise PreconditionRequired(
            f"Say which version you edited: If-Match with the ETag that GET gave, or ?version=. The current one is {current}.",
            current=current,
        )
    named = whole_number(request, "version")
    if numbers is None:
        return named or 0
    if named is not None and named not in numbers:
        raise InvalidInput("If-Match and ?version= name different versions. Send one of them.")
    return current if current in numbers else max(numbers)


def is_unchanged(request: Request, number: int) -> bool:
    """Whether If-None-Match already knows the version."""
    text = request.headers.get("If-None-Match", "")
    return text.strip() == "*" or any(tag == str(number) for _, tag in _TAG.findall(text))


def whole_number(request: Request, name: str, *, required: bool = False) -> int | None:
    """A version's number of the query; InvalidInput for anything else."""
    text = request.query_params.get(name, "")
    if not text and not required:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise _bad(name, "must be the number of a version")
    return int(text)


def flag(request: Request, name: str) -> bool:
    """A switch of the query: `true` or `false`, absent is false."""
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise _bad(name, "must be true or false")
    return text == "true"


def _bad(name: str, message: str) -> InvalidInput:
    return InvalidInput(f"`{name}` {message}.", errors=[{"path": name, "message": message}])


def _numbers(text: str | None, name: str) -> list[int] | None:
    if text is None or text.strip() == "*":
        return None
    tags = [tag for _, tag in _TAG.findall(text)]
    if not tags or _TAG.sub("", text).strip() or not all(tag.isascii() and tag.isdigit() and len(tag) <= 9 for tag in tags):
        raise InvalidInput(f'{name} does not name a version. Send the ETag that GET gave, such as {name}: "3".')
    return [int(tag) for tag in tags]


def comment_of(request: Request) -> str:
    """`?comment=` of a publication: beside the document, because that is the whole body."""
    text = request.query_params.get("comment", "")
    if len(text) > MAX_COMMENT or not all(character.isprintable() or character in "\n\t" for character in text):
        raise _bad("comment", f"must be printable text of at most {MAX_COMMENT} characters")
    return text


def one_of(request: Request, name: str, values: Sequence[str]) -> str:
    """A choice of the query; the first is the default."""
    text = request.query_params.get(name, values[0])
    if text not in values:
        raise _bad(name, f"must be {' or '.join(values)}")
    return text


def pairs(request: Request, name: str) -> dict[str, str]:
    """A parameter that may be repeated, each time `OLD=NEW`."""
    found = {}
    for text in request.query_params.getlist(name):
        old, separator, new = text.rpartition("=")
        if not (separator and old and new):
            raise _bad(name, "must be OLD=NEW")
        found[old] = new
    return found
