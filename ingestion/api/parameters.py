"""Query parameters, read strictly: what cannot be read is refused and not guessed."""

from rest_framework.request import Request

from config.errors import InvalidInput

_WORDS = {"": False, "true": True, "1": True, "false": False, "0": False}
MAX_TEXT = 500


def flag_of(request: Request, name: str) -> bool:
    """`?name=true|false`; absent is false."""
    value = request.query_params.get(name, "").lower()
    if value not in _WORDS:
        raise _refused(name, "must be true or false")
    return _WORDS[value]


def text_of(request: Request, name: str) -> str:
    """`?name=…`, absent is empty. A NUL cannot be stored and so cannot be searched for."""
    value = request.query_params.get(name, "")
    if "\0" in value or len(value) > MAX_TEXT:
        raise _refused(name, f"must be at most {MAX_TEXT} characters without NUL")
    return value


def choice_of(request: Request, name: str, choices: list[str]) -> str:
    """`?name=` one of `choices`; absent is empty."""
    value = request.query_params.get(name, "")
    if value and value not in choices:
        raise _refused(name, f"must be one of {', '.join(choices)}")
    return value


def _refused(name: str, rule: str) -> InvalidInput:
    message = f"`{name}` {rule}."
    return InvalidInput(message, errors=[{"path": name, "message": message}])
