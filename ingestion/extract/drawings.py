"""Charts and diagrams of Office documents: the words and numbers that they show."""

from collections.abc import Mapping

from ingestion.extract.blocks import Writer
from ingestion.extract.ooxml import A, Package, R, Relation
from ingestion.extract.xml_tree import Element

C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
MAX_POINTS, MAX_SERIES = 500, 30


class DrawingReader:
    """One for each part: a drawing names its own part by a relation."""

    def __init__(self, package: Package, relations: Mapping[str, Relation]) -> None:
        self._package = package
        self._relations = relations

    def write(self, element: Element, out: Writer) -> None:
        """`element` is a c:chart or dgm:relIds that stands in a drawing."""
        is_chart = element.tag == f"{C}chart"
        relation = self._relations.get(element.get(f"{R}id" if is_chart else f"{R}dm", ""))
        root = self._package.optional(relation.target) if relation is not None and not relation.external else None
        if root is None:
            return
        if is_chart:
            _write_chart(root, out)
        else:
            for point in root.iter(f"{DGM}pt"):
                if text := _text(point):
                    out.item(text)


def _write_chart(root: Element, out: Writer) -> None:
    """Its title, then the data as a table: a line for each category, a column for each series."""
    if (title := root.find(f"{C}chart/{C}title")) is not None:
        out.paragraph(_text(title))
    categories: dict[int, str] = {}
    columns: list[tuple[str, dict[int, str]]] = []
    for series in list(root.iter(f"{C}ser"))[:MAX_SERIES]:
        for name in ("cat", "xVal"):
            categories = categories or _points(series.find(f"{C}{name}"))
        values = _points(series.find(f"{C}val")) or _points(series.find(f"{C}yVal"))
        if values:
            columns.append((" ".join(_points(series.find(f"{C}tx")).values()), values))
    if columns:
        positions = sorted({*categories, *(position for _, values in columns for position in values)})[:MAX_POINTS]
        rows = [[categories.get(at, str(at + 1)), *(values.get(at, "") for _, values in columns)] for at in positions]
        out.table([["", *(name for name, _ in columns)], *rows])


def _points(element: Element | None) -> dict[int, str]:
    found: dict[int, str] = {}
    for point in element.iter(f"{C}pt") if element is not None else ():
        index = point.get("idx", "")
        if index.isdecimal() and len(index) < 7:
            found[int(index)] = " ".join((point.findtext(f"{C}v") or "").split())
    return found


def _text(element: Element) -> str:
    paragraphs = ("".join(run.text or "" for run in paragraph.iter(f"{A}t")) for paragraph in element.iter(f"{A}p"))
    return " ".join(" ".join(paragraphs).split())
