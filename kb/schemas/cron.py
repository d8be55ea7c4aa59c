"""Cron expressions of sources: five fields, read in UTC, with the meaning that Celery's beat gives them when it fires.

A day must match **both** day fields (`0 0 13 * 5` is Friday the 13th): Celery joins day of month and day of week with AND, where the cron
of Unix joins them with OR once both are restricted. What is checked here is what fires, so `0 0 30 2 1` never fires and is refused, and
gaps are measured between days that match both. Only what cron and Celery read alike is accepted: numbers, names, ranges, `*`, steps after
`*` or a range, lists. `7` for Sunday, which Celery does not know, is rewritten. `@hourly`, `L`, `#`, `?` and seconds are refused.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_WEEKDAYS = {name: number for number, name in enumerate(_DAY_NAMES)}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _WEEKDAYS),
)
_PART = re.compile(r"(?:(?P<star>\*)|(?P<first>[0-9a-z]+)(?:-(?P<last>[0-9a-z]+))?)(?:/(?P<step>[0-9]{1,4}))?")
_LONGEST = 200
# Between 1901 and 2099 the calendar repeats after 28 years: every 29 February falls on every weekday once.
_CYCLE_START, _CYCLE_END = date(2024, 1, 1), date(2052, 1, 1)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a source runs. `fields` are the five texts for Celery's crontab: minute, hour, day of month, month, day of week."""

    fields: tuple[str, str, str, str, str]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    def __str__(self) -> str:
        return " ".join(self.fields)

    def matches(self, day: date) -> bool:
        return day.month in self.months and day.day in self.days and day.isoweekday() % 7 in self.weekdays

    def next_fire(self, after: datetime) -> datetime:
        """The first fire later than `after` (aware); in UTC."""
        start = after.astimezone(UTC).replace(tzinfo=None)
        day = start.date()
        for _ in range(366 * 41):  # 2100 is no leap year: 29 February on a given weekday can take 40 years
            if self.matches(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        fire = datetime.combine(day, time(hour, minute))
                        if fire > start:
                            return fire.replace(tzinfo=UTC)
            day += timedelta(days=1)
        raise ValueError(f"'{self}' never fires after {after:%Y-%m-%d}.")

    def last_fire(self, until: datetime) -> datetime:
        """The last fire not later than `until` (aware); in UTC."""
        end = until.astimezone(UTC).replace(tzinfo=None)
        day = end.date()
        for _ in range(366 * 41):
            if self.matches(day):
                for hour in reversed(self.hours):
                    for minute in reversed(self.minutes):
                        fire = datetime.combine(day, time(hour, minute))
                        if fire <= end:
                            return fire.replace(tzinfo=UTC)
            day -= timedelta(days=1)
        raise ValueError(f"'{self}' never fired before {until:%Y-%m-%d}.")

    def shortest_gap(self) -> int | None:
        """Seconds between the two closest fires; None if it never fires."""
        if not any(self.matches(day) for day in _cycle()):
            return None
        moments = [hour * 60 + minute for hour in self.hours for minute in self.minutes]
        gaps = [later - earlier for earlier, later in pairwise(moments)]
        overnight = 24 * 60 - moments[-1] + moments[0]
        if not gaps or overnight < min(gaps):  # else no pair of days can be closer than the day's own fires
            gaps.append(overnight + 24 * 60 * (self._closest_days() - 1))
        return min(gaps) * 60

    def _closest_days(self) -> int:
        closest, previous = (_CYCLE_END - _CYCLE_START).days, None
        for number, day in enumerate(_cycle()):
            if self.matches(day):
                if previous is not None:
                    closest = min(closest, number - previous)
                    if closest == 1:
                        break
                previous = number
        return closest


@lru_cache(maxsize=1)
def _cycle() -> tuple[date, ...]:
    return tuple(_CYCLE_START + timedelta(days=number) for number in range((_CYCLE_END - _CYCLE_START).days))


def parse_cron(text: str) -> Schedule:
    """Read an expression; ValueError says what is wrong and what to write. Whether it ever fires is `shortest_gap`'s question."""
    if len(text) > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST} characters.")
    fields = text.lower().split()
    if len(fields) != 5:
        raise ValueError(
            f"must have five fields (minute, hour, day of month, month, day of week), read in UTC; it has {len(fields)}. "
            "Every day at 03:30 is '30 3 * * *'."
        )
    values = [_expand(field, *rule) for field, rule in zip(fields, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = values
    if 7 in weekdays:
        weekdays = {day % 7 for day in weekdays}
        fields[4] = ",".join(str(day) for day in sorted(weekdays))
    return Schedule(
        fields=(fields[0], fields[1], fields[2], fields[3], fields[4]),
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(weekdays),
    )


def check_cron(text: str, *, min_interval_seconds: int) -> str:
    """The expression in the form that is stored; ValueError if it is malformed, never fires, or fires too often."""
    schedule = parse_cron(text)
    gap = schedule.shortest_gap()
    if gap is None:
        raise ValueError(f"'{text}' never fires: no day matches its day of month, month and day of week together. Change one of them.")
    if gap < min_interval_seconds:
        raise ValueError(
            f"'{text}' fires every {gap} s at its closest, but this installation wants at least {min_interval_seconds} s between two runs "
            "(LECTERN_MIN_SCHEDULE_INTERVAL)."
        )
    return str(schedule)


def _expand(field: str, name: str, low: int, high: int, words: dict[str, int]) -> set[int]:
    values: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if not match or (match["step"] and not match["star"] and not match["last"]):
            raise ValueError(f"cannot be read: '{part}' is not a {name}. Write a number, a range (1-5), * or */5, or a list of these.")
        step = int(match["step"] or 1)
        if step < 1:
            raise ValueError(f"cannot be read: the step in '{part}' must be at least 1.")
        if match["star"]:
            top = 6 if words is _WEEKDAYS else high
            values.update(range(low, top + 1, step))
            continue
        first = _number(match["first"], name, low, high, words)
        last = _number(match["last"], name, low, high, words) if match["last"] else first
        if last == 0 < first and words is _WEEKDAYS:
            last = 7  # sat-sun
        if last < first:
            raise ValueError(f"cannot be read: the range '{part}' runs backwards. Write it as a list of two ranges.")
        values.update(range(first, last + 1, step))
    return values


def _number(text: str, name: str, low: int, high: int, words: dict[str, int]) -> int:
    value = words.get(text)
    if value is None:
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"cannot be read: '{text}' is not a {name}.")
        value = int(text)
    if not low <= value <= high:
        raise ValueError(f"cannot be read: the {name} {value} is not between {low} and {high}.")
    return value
