"""The parts of an Excel workbook around its sheets: which sheets there are, shared texts, formats, charts. Elements are known by their bare
names, so that the strict and the transitional form of the standard are one."""

import posixpath
import re
from dataclasses import dataclass

from config.errors import ExtractionError
from ingestion.extract.archive import Archive, damaged
from ingestion.extract.tabular.number_formats import BUILT_IN, NumberFormat, number_format
from ingestion.extract.tabular.xml_events import Handlers, attribute, read_part

MAX_SHEETS = 10_000
# Of shared texts; a workbook with so many of any length that means something would unpack to more than is allowed.
MAX_TEXTS = 3_000_000
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


@dataclass(frozen=True, slots=True)
class SheetPart:
    name: str
    part: str
    hidden: bool


@dataclass(frozen=True, slots=True)
class Workbook:
    sheets: list[SheetPart]
    from_1904: bool
    relations: dict[str, str]
    """Of the workbook: the last word of their type -> part."""


def read_workbook(archive: Archive) -> Workbook:
    """Raises ExtractionError for what has no workbook, or names sheets that are not there."""
    part = relations(archive, "").by_type("officeDocument") or "xl/workbook.xml"
    if part not in archive:
        raise damaged(archive.name)
    links = relations(archive, part)
    found = _WorkbookHandlers()
    read_part(archive.pieces(part), found, name=archive.name)
    sheets = [
        SheetPart(name, target, hidden)
        for name, link, hidden in found.sheets
        if (target := links.targets.get(link)) in archive and "worksheet" in links.types[link]
    ]
    if not sheets:
        raise damaged(archive.name) if not found.sheets else _without_sheets(archive.name)
    return Workbook(sheets, found.from_1904, {kind.rpartition("/")[2]: links.targets[link] for link, kind in links.types.items()})


@dataclass(frozen=True, slots=True)
class Relations:
    targets: dict[str, str]
    types: dict[str, str]

    def by_type(self, word: str) -> str | None:
        return next((self.targets[link] for link, kind in self.types.items() if kind.endswith(f"/{word}")), None)

    def all_of(self, word: str) -> list[str]:
        return [self.targets[link] for link, kind in self.types.items() if kind.endswith(f"/{word}")]


def relations(archive: Archive, part: str) -> Relations:
    """What a part points to inside of the file, by the ids that it uses; of the whole file for ""."""
    folder, base = posixpath.split(part)
    name = posixpath.join(folder, "_rels", f"{base}.rels")
    handlers = _RelationHandlers(folder)
    if name in archive:
        read_part(archive.pieces(name), handlers, name=archive.name)
    return Relations(handlers.targets, handlers.types)


def read_texts(archive: Archive, part: str | None) -> list[str]:
    """The shared texts, of which cells hold the numbers."""
    handlers = TextHandlers(archive.name)
    if part is not None and part in archive:
        read_part(archive.pieces(part), handlers, name=archive.name)
    return handlers.texts


def read_formats(archive: Archive, part: str | None) -> list[NumberFormat]:
    """By the style number of a cell."""
    handlers = _StyleHandlers()
    if part is not None and part in archive:
        read_part(archive.pieces(part), handlers, name=archive.name)
    return [number_format(handlers.codes.get(number) or BUILT_IN.get(number, "General")) for number in handlers.styles]


def unescape(text: str) -> str:
    """`_x000D_` and the like, as which workbooks write what XML cannot hold."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


class TextHandlers(Handlers):
    """Texts with their runs put together, without the readings above East Asian ones."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.texts: list[str] = []
        self._pieces: list[str] = []
        self._open = False
        self._reading = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "si":
            self._pieces = []
            if len(self.texts) >= MAX_TEXTS:
                raise too_large(self._name)
        elif name == "t":
            self._open = not self._reading
        elif name == "rPh":
            self._reading = True

    def end(self, name: str) -> None:
        if name == "t":
            self._open = False
        elif name == "rPh":
            self._reading = False
        elif name == "si":
            self.texts.append(unescape("".join(self._pieces)))

    def text(self, data: str) -> None:
        if self._open:
            self._pieces.append(data)


class _WorkbookHandlers(Handlers):
    def __init__(self) -> None:
        self.sheets: list[tuple[str, str, bool]] = []
        self.from_1904 = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sheet" and len(self.sheets) < MAX_SHEETS:
            hidden = attributes.get("state", "visible") in ("hidden", "veryHidden")
            self.sheets.append((attributes.get("name", ""), attribute(attributes, "id"), hidden))
        elif name == "workbookPr":
            self.from_1904 = attributes.get("date1904") in ("1", "true", "on")


class _RelationHandlers(Handlers):
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.targets: dict[str, str] = {}
        self.types: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name != "Relationship" or attributes.get("TargetMode") == "External":
            return
        link, target = attributes.get("Id", ""), attributes.get("Target", "")
        self.targets[link] = posixpath.normpath(posixpath.join("/", self._folder, target)).lstrip("/")
        self.types[link] = attributes.get("Type", "")


class _StyleHandlers(Handlers):
    def __init__(self) -> None:
        self.codes: dict[int, str] = {}
        self.styles: list[int] = []
        self._of_cells = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "numFmt":
            self.codes[_number(attributes.get("numFmtId"))] = attributes.get("formatCode", "")
        elif name == "cellXfs":
            self._of_cells = True
        elif name == "xf" and self._of_cells:
            self.styles.append(_number(attributes.get("numFmtId")))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._of_cells = False


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 9 else 0


def too_large(name: str) -> ExtractionError:
    happened = f"{name} holds more than {MAX_TEXTS:,} different texts."
    return ExtractionError(happened, advice="Split it into smaller ones.", reason="too_large", retires=True)


def _without_sheets(name: str) -> ExtractionError:
    return ExtractionError(f"{name} holds no sheet with cells.", advice="Upload a workbook with tables.", reason="empty", retires=True)
