"""The numbers that Word shows before paragraphs: they stand nowhere in the text and are counted here."""

import re
from dataclasses import dataclass, field, replace

from ingestion.extract.blocks import BULLET
from ingestion.extract.docx_styles import W, number_of, value_of
from ingestion.extract.numerals import formatted
from ingestion.extract.xml_tree import Element

DEPTHS = 9
_PLACE = re.compile(r"%([1-9])")


@dataclass(frozen=True, slots=True)
class Level:
    format: str = "decimal"
    text: str = ""
    start: int = 1
    legal: bool = False


@dataclass(slots=True)
class _Counter:
    """Lists of one abstract definition go on counting together, as Word does; a start that a list overrides counts anew, once."""

    values: dict[int, int] = field(default_factory=dict)
    restarted: set[tuple[str, int]] = field(default_factory=set)


class Numbering:
    def __init__(self, root: Element | None) -> None:
        self._abstract: dict[str, dict[int, Level]] = {}
        self._lists: dict[str, str] = {}
        self._levels: dict[str, dict[int, Level]] = {}
        self._starts: dict[str, dict[int, int]] = {}
        self._counters: dict[str, _Counter] = {}
        if root is not None:
            self._read(root)

    def __contains__(self, num_id: str | None) -> bool:
        return num_id in self._lists

    def label(self, num_id: str, depth: int) -> str:
        """What stands before the next paragraph of the list: BULLET, "3.", "2.1"; "" for nothing."""
        depth = min(max(0, depth), DEPTHS - 1)
        levels = self._levels[num_id]
        level = levels.get(depth, Level(format="bullet"))
        values = self._count(num_id, depth, levels)
        if level.format == "bullet":
            return BULLET
        if level.format == "none":
            return "" if "%" in level.text else level.text.strip()

        def place(match: re.Match[str]) -> str:
            position = int(match[1]) - 1
            shown = levels.get(position, Level())
            return formatted(values.get(position, shown.start), "decimal" if level.legal else shown.format)

        return _PLACE.sub(place, level.text).strip()

    def _count(self, num_id: str, depth: int, levels: dict[int, Level]) -> dict[int, int]:
        counter = self._counters.setdefault(self._lists[num_id], _Counter())
        values = counter.values
        start = self._starts[num_id].get(depth)
        if start is not None and (num_id, depth) not in counter.restarted:
            counter.restarted.add((num_id, depth))
            values.pop(depth, None)
        values[depth] = values[depth] + 1 if depth in values else levels.get(depth, Level()).start if start is None else start
        for above in range(depth):
            values.setdefault(above, levels.get(above, Level()).start)
        for below in [each for each in values if each > depth]:
            del values[below]
        return values

    def _read(self, root: Element) -> None:
        links: dict[str, str] = {}
        named: dict[str, str] = {}
        for element in root.iter(f"{W}abstractNum"):
            identifier = element.get(f"{W}abstractNumId", "")
            self._abstract[identifier] = {_depth(each): _level(each) for each in element.iter(f"{W}lvl")}
            if (name := value_of(element, f"{W}styleLink")) is not None:
                named[name] = identifier
            if (name := value_of(element, f"{W}numStyleLink")) is not None:
                links[identifier] = name
        for element in root.iter(f"{W}num"):
            identifier = element.get(f"{W}numId", "")
            abstract = value_of(element, f"{W}abstractNumId") or ""
            abstract = named.get(links.get(abstract, ""), abstract)
            levels, starts = dict(self._abstract.get(abstract, {})), {}
            for each in element.iter(f"{W}lvlOverride"):
                depth = _depth(each)
                if (own := each.find(f"{W}lvl")) is not None:
                    levels[depth] = _level(own)
                if (start := number_of(value_of(each, f"{W}startOverride"))) is not None:
                    starts[depth] = start
            self._lists[identifier], self._levels[identifier], self._starts[identifier] = abstract, levels, starts
        self._lists.pop("0", None)  # says that there is no list


def _depth(element: Element) -> int:
    return number_of(element.get(f"{W}ilvl")) or 0


def _level(element: Element) -> Level:
    level = Level(text=value_of(element, f"{W}lvlText") or "", legal=element.find(f"{W}isLgl") is not None)
    start = number_of(value_of(element, f"{W}start"))
    return replace(level, format=value_of(element, f"{W}numFmt") or "decimal", start=1 if start is None else start)
