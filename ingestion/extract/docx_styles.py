"""What a paragraph's style makes of it: a heading of some level, an item of some list. Styles inherit."""

import re
from dataclasses import dataclass

from ingestion.extract.ooxml import Package
from ingestion.extract.xml_tree import Element

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MAX_INHERITANCE = 20
BODY_LEVEL = 9

# "heading 1" is what Word writes in every language; other programs write what their users see.
_HEADING_WORDS = (
    "heading überschrift titre título titolo titulo encabezado encabezamento intestazione kop rubrik overskrift otsikko nagłówek nadpis "
    "címsor заголовок başlık επικεφαλίδα titlu naslov 标题 標題 見出し 제목 כותרת عنوان"
)
_HEADING = re.compile(rf"(?:{'|'.join(_HEADING_WORDS.split())})\s*([1-9])(?:\s*char)?\Z", re.IGNORECASE)
_TITLE_WORDS = "title titel titre título titolo titulo название заголовок otsikko tytuł název cím başlık 标题 표제 表題"
_TITLES = frozenset(_TITLE_WORDS.split())
_CONTENTS = re.compile(r"(?:toc|contents|verzeichnis|tm|tdc|sommario|inhopg|indholdsfortegnelse)\s*[1-9]\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Style:
    """None where it says nothing itself."""

    name: str
    based_on: str
    level: int | None
    num_id: str | None
    depth: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """What a paragraph is: `level` 1 to 9 of a heading, 0 otherwise; the list that it belongs to."""

    level: int = 0
    is_title: bool = False
    is_contents: bool = False
    num_id: str | None = None
    depth: int = 0


class Styles:
    def __init__(self, root: Element | None) -> None:
        self._styles: dict[str, Style] = {}
        self._default = ""
        self._looks: dict[str, Look] = {}
        for element in root.iter(f"{W}style") if root is not None else ():
            if element.get(f"{W}type", "paragraph") == "paragraph":
                identifier = element.get(f"{W}styleId", "")
                self._styles[identifier] = _style(element)
                if element.get(f"{W}default") in ("1", "true", "on"):
                    self._default = identifier

    def look(self, style_id: str | None) -> Look:
        identifier = self._default if style_id is None else style_id
        if identifier not in self._looks:
            self._looks[identifier] = self._resolve(identifier)
        return self._looks[identifier]

    def _resolve(self, identifier: str) -> Look:
        line = self._inheritance(identifier)
        if not line:
            # Some programs name styles that they do not define.
            spelled = re.sub(r"(?<=\D)(?=\d\Z)", " ", identifier)
            line = [Style(name=spelled, based_on="", level=None, num_id=None, depth=None)]
        level = next((found for style in line if (found := _heading_level(style)) is not None), 0)
        return Look(
            level=level,
            is_title=any(is_title_name(style.name) for style in line[:2]),
            is_contents=any(_CONTENTS.match(style.name) for style in line[:2]),
            num_id=next((style.num_id for style in line if style.num_id is not None), None),
            depth=next((style.depth for style in line if style.depth is not None), 0),
        )

    def _inheritance(self, identifier: str) -> list[Style]:
        line: list[Style] = []
        while (style := self._styles.get(identifier)) is not None and len(line) < MAX_INHERITANCE:
            line.append(style)
            identifier = style.based_on
        return line


def read_styles(package: Package, part: str | None) -> Styles:
    return Styles(package.optional(part) if part else None)


def value_of(element: Element | None, path: str) -> str | None:
    """The w:val of what is found below; None when it is not there."""
    found = element.find(path) if element is not None else None
    return None if found is None else found.get(f"{W}val", "")


def number_of(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,9}", text) else None


def _style(element: Element) -> Style:
    properties = element.find(f"{W}pPr")
    return Style(
        name=(value_of(element, f"{W}name") or "").strip(),
        based_on=value_of(element, f"{W}basedOn") or "",
        level=number_of(value_of(properties, f"{W}outlineLvl")),
        num_id=value_of(properties, f"{W}numPr/{W}numId"),
        depth=number_of(value_of(properties, f"{W}numPr/{W}ilvl")),
    )


def named_level(name: str) -> int | None:
    """1 to 9 for "heading 3" and what programs in other languages write; None for another name."""
    match = _HEADING.match(name.strip())
    return int(match[1]) if match else None


def is_title_name(name: str) -> bool:
    return name.strip().lower() in _TITLES


def _heading_level(style: Style) -> int | None:
    """Its outline level, else what its name says; None where it leaves that to the style it is based on."""
    if style.level is not None:
        return 0 if not 0 <= style.level < BODY_LEVEL else style.level + 1
    return named_level(style.name)
