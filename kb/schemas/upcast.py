"""Stored documents are never rewritten: an older one is lifted, step by step, each time it is read."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from config.errors import InvalidInput

Step = Callable[[dict[str, Any]], dict[str, Any]]

CURRENT = 1

# n -> the pure function that turns a document of schema n into one of schema n + 1. A released one is never changed.
STEPS: dict[int, Step] = {}


def upcast(document: Mapping[str, Any], *, steps: Mapping[int, Step] = STEPS, current: int = CURRENT) -> dict[str, Any]:
    """The document in the current schema; the given one stays as it is. Without a number it is taken as current (written by a person)."""
    lifted = deepcopy(dict(document))
    number = lifted.setdefault("schema", current)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise _refused(f"must be a whole number from 1 to {current}. Leave it out to write the current format.")
    if number > current:
        raise _refused(f"is {number}, but this version of Lectern reads up to {current}. Upgrade Lectern.")
    for step in range(number, current):
        lifted = {**steps[step](lifted), "schema": step + 1}
    return lifted


def _refused(message: str) -> InvalidInput:
    return InvalidInput(f"The document is not valid. schema: {message}", errors=[{"path": "schema", "message": message}])
