"""Charts of a sheet: their titles, and the figures that they show, which the file keeps beside the drawing."""

from dataclasses import dataclass, field

from ingestion.extract.archive import Archive
from ingestion.extract.tables import markdown_table
from ingestion.extract.tabular.figures import general
from ingestion.extract.tabular.xlsx_parts import Relations, relations
from ingestion.extract.tabular.xml_events import Handlers, read_part

MAX_CHARTS = 20
MAX_POINTS = 200
MAX_SERIES = 32


def chart_notes(archive: Archive, links: Relations) -> list[str]:
    """Of the sheet whose relations those are; a chart that cannot be read is left out."""
    notes: list[str] = []
    for drawing in links.all_of("drawing"):
        for part in relations(archive, drawing).all_of("chart"):
            if part in archive and len(notes) < MAX_CHARTS and (note := _chart(archive, part)):
                notes.append(note)
    return notes


@dataclass(slots=True)
class _Series:
    name: str = ""
    categories: dict[int, str] = field(default_factory=dict)
    values: dict[int, str] = field(default_factory=dict)


def _chart(archive: Archive, part: str) -> str:
    handlers = _ChartHandlers()
    read_part(archive.pieces(part), handlers, name=archive.name)
    series = [each for each in handlers.series if each.values][:MAX_SERIES]
    places = sorted({place for each in series for place in each.values})[:MAX_POINTS]
    labels = next((each.categories for each in series if each.categories), {})
    rows = [["", *(each.name for each in series)]]
    rows += [[labels.get(place, str(place + 1)), *(each.values.get(place, "") for each in series)] for place in places]
    title = " ".join("".join(handlers.title).split())
    kind = handlers.kind.removesuffix("Chart").removesuffix("3D").capitalize()
    table = markdown_table(rows) if places else ""
    heading = ": ".join(part for part in (f"{kind} chart".strip().capitalize(), title) if part)
    return "\n\n".join(part for part in (heading, table) if part) if title or table else ""


class _ChartHandlers(Handlers):
    def __init__(self) -> None:
        self.kind = ""
        self.title: list[str] = []
        self.series: list[_Series] = []
        self._path: list[str] = []
        self._point = 0
        self._open = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        self._open = name == "t" or name == "v"
        if name.endswith("Chart") and not self.kind:
            self.kind = name
        elif name == "ser" and len(self.series) < MAX_SERIES:
            self.series.append(_Series())
        elif name == "pt":
            place = attributes.get("idx", "")
            self._point = int(place) if place.isdecimal() and len(place) < 7 else 0

    def end(self, name: str) -> None:
        self._path.pop()
        self._open = False

    def text(self, data: str) -> None:
        if not self._open:
            return
        if "ser" in self._path:
            self._series_text(data)
        elif "title" in self._path and "plotArea" not in self._path:
            self.title.append(data)

    def _series_text(self, data: str) -> None:
        series = self.series[-1]
        role = next((name for name in self._path if name in ("tx", "cat", "val", "xVal", "yVal")), "")
        if role == "tx":
            series.name += data
        elif role in ("cat", "xVal", "val", "yVal") and self._point < MAX_POINTS:
            points = series.categories if role in ("cat", "xVal") else series.values
            points[self._point] = _figure(data)


def _figure(text: str) -> str:
    try:
        return general(float(text))
    except (ValueError, OverflowError):
        return text
