"""Addresses without end: calendars, query strings that grow, paths that repeat themselves.

Session ids are not judged here: those with a known name leave the identity of an address (`urls`), so that the page is one page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from ingestion.crawl.urls import identity

MOST_SEGMENTS = 40
MOST_PARAMETERS = 24
MOST_DATES = 366  # pages that differ in nothing but a date: one year of days
MOST_COMBINATIONS = 64  # of parameters of one path
MOST_COUNTERS = 5_000

_LONGEST_CYCLE = 4  # segments; /a/b/a/b/a/b repeats a cycle of two
_MOST_CYCLES = 3
_MOST_OF_ONE_SEGMENT = 3
_NESTED = "%2525"  # a percent sign escaped twice: an address inside an address inside an address
_DATE = r"(?:1[89]|2\d)\d\d[-/](?:0?[1-9]|1[0-2])(?:[-/]\d{1,2})?"
_DATE_IN_PATH = re.compile(rf"/{_DATE}(?=/|$)")
_DATE_VALUE = re.compile(rf"{_DATE}(?:[T%+].*)?")
_PARTS_OF_DATES = frozenset({"year", "month", "day", "week", "date", "yr", "mon"})


@dataclass(slots=True)
class Seen:
    """What a run has counted so far, in a bounded number of counters. `counts` holds short strings and numbers, to be stored as JSON."""

    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def restored(cls, counts: Mapping[str, int]) -> Seen:
        return cls(dict(counts))

    def within(self, subject: str, most: int) -> bool:
        """Counts one more of a subject; False once there are `most`, and where no counter is left nothing is judged."""
        key = _key(subject)
        count = self.counts.get(key, 0)
        if count >= most:
            return False
        if count or len(self.counts) < MOST_COUNTERS:
            self.counts[key] = count + 1
        return True

    def is_new(self, subject: str) -> bool:
        key = _key(subject)
        if key in self.counts or len(self.counts) >= MOST_COUNTERS:
            return False
        self.counts[key] = 1
        return True


def why_trap(url: str, *, seen: Seen) -> str:
    """A sentence where the address looks like one of endlessly many, else nothing. To be asked once for each page of a run, when it is
    found: `seen` counts."""
    _, _, known = identity(url).partition("://")
    path, _, query = known.partition("?")
    parameters = query.split("&") if query else []
    return _repeats(path) or _grows(parameters) or _calendar(path, parameters, seen) or _combines(path, parameters, seen)


def _repeats(path: str) -> str:
    segments = path.split("/")[1:]
    if len(segments) > MOST_SEGMENTS:
        return f"The path has more than {MOST_SEGMENTS} segments."
    for length in range(1, _LONGEST_CYCLE + 1):
        cycles = _MOST_CYCLES + (length == 1)
        for start in range(len(segments) - length * cycles + 1):
            cycle = segments[start : start + length]
            if not _is_number(cycle) and segments[start : start + length * cycles] == cycle * cycles:
                return f"The path repeats /{'/'.join(cycle)[:100]} again and again."
    for segment in set(segments):
        if segments.count(segment) > _MOST_OF_ONE_SEGMENT and not _is_number([segment]):
            return f"The path comes back to /{segment[:100]} again and again."
    return ""


def _grows(parameters: list[str]) -> str:
    if len(parameters) > MOST_PARAMETERS:
        return f"The query has more than {MOST_PARAMETERS} parameters."
    if any(parameters.count(parameter) >= _MOST_CYCLES for parameter in set(parameters)):
        return "The query repeats the same parameter again and again."
    if any(_NESTED in parameter for parameter in parameters):
        return "The query holds an address in an address in an address."
    return ""


def _calendar(path: str, parameters: list[str], seen: Seen) -> str:
    # Only the date is taken out: /2024/05/msg00012.html is a message, and an archive has thousands of them.
    shape = _DATE_IN_PATH.sub("/date", path) + "?" + "&".join(_without_date(parameter) for parameter in parameters)
    if shape == f"{path}?{'&'.join(parameters)}":
        return ""
    if seen.within(f"dates {shape}", MOST_DATES):
        return ""
    return f"More than {MOST_DATES} addresses differ in nothing but a date: this looks like a calendar."


def _combines(path: str, parameters: list[str], seen: Seen) -> str:
    """Filters of a list add up: new sets of names, or the same name with more and more values."""
    names = [parameter.partition("=")[0] for parameter in parameters]
    if len(names) > len(set(names)):
        subject = f"repeated {path}"
    elif len(names) > 1 and seen.is_new(f"names {path}?{'&'.join(names)}"):  # an identity is sorted by them
        subject = f"path {path}"
    else:
        return ""
    if seen.within(subject, MOST_COMBINATIONS):
        return ""
    return f"The path has more than {MOST_COMBINATIONS} combinations of parameters: these look like the filters of a list."


def _without_date(parameter: str) -> str:
    name, _, value = parameter.partition("=")
    if _DATE_VALUE.fullmatch(value) or (value.isdecimal() and name.lower() in _PARTS_OF_DATES):
        return f"{name}=date"
    return parameter


def _is_number(segments: list[str]) -> bool:
    return all(segment.isdecimal() for segment in segments)


def _key(subject: str) -> str:
    return blake2b(subject.encode(), digest_size=8).hexdigest()
