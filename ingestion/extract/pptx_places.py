"""Where the shapes of a slide stand and what their paragraphs look like: a placeholder says neither when its layout does."""

from dataclasses import dataclass

from ingestion.extract.ooxml import A, Package
from ingestion.extract.xml_tree import Element

P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
# Shapes within a quarter of an inch stand in one row (lengths are in 1/914,400 inch).
ROW = 228_600
BULLETED = frozenset({"", "body", "obj"})


@dataclass(frozen=True, slots=True)
class Place:
    """Of a placeholder. `plain` has the depths at which its paragraphs have no bullets."""

    at: tuple[int, int] | None = None
    plain: frozenset[int] = frozenset()


class Layouts:
    """The placeholders of layouts and their masters, each part read once."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._known: dict[str, dict[tuple[str, str], Place]] = {}

    def places(self, part: str, *, kind: str) -> dict[tuple[str, str], Place]:
        """Of the layout (or, for a layout, the master) that a part is made from: by type and index, and by each alone."""
        target = next((each.target for each in self._package.relations(part).values() if each.kind == kind), "")
        if target not in self._known:
            self._known[target] = {}  # also where it leads back to itself
            root = self._package.optional(target) if target else None
            if root is not None:
                above = self.places(target, kind="slideMaster") if kind == "slideLayout" else {}
                self._known[target] = _read(root, above)
        return self._known[target]


def _read(root: Element, above: dict[tuple[str, str], Place]) -> dict[tuple[str, str], Place]:
    found: dict[tuple[str, str], Place] = dict(above)
    for shape in root.iter(f"{P}sp"):
        holder = placeholder(shape)
        if holder is None:
            continue
        kind, index = holder
        inherited = place_of(holder, found) or Place()
        place = Place(at=position(shape) or inherited.at, plain=plain_depths(shape) or inherited.plain)
        found[kind, index] = place
        found["", index] = place
        found.setdefault((kind, ""), place)
    return found


def place_of(holder: tuple[str, str], places: dict[tuple[str, str], Place]) -> Place | None:
    """By its index, which only layouts share with slides, else by its type."""
    kind, index = holder
    general = "title" if kind == "ctrTitle" else kind
    keys = ((kind, index), ("", index) if index else None, (kind, ""), (general, ""), ("body", "") if kind in BULLETED else None)
    return next((places[key] for key in keys if key is not None and key in places), None)


def placeholder(shape: Element) -> tuple[str, str] | None:
    """Type and index; None for a shape that is none."""
    holder = shape.find(f"./*/{P}nvPr/{P}ph")
    return None if holder is None else (holder.get("type", ""), holder.get("idx", ""))


def position(shape: Element) -> tuple[int, int] | None:
    """(row, distance from the left)."""
    offset = shape.find(f"{P}xfrm/{A}off")
    if offset is None:
        offset = shape.find(f"./*/{A}xfrm/{A}off")
    try:
        return None if offset is None else (round(int(offset.get("y", "0")) / ROW), int(offset.get("x", "0")))
    except ValueError:
        return None


def plain_depths(shape: Element) -> frozenset[int]:
    styles = shape.find(f"{P}txBody/{A}lstStyle")
    if styles is None:
        return frozenset()
    return frozenset(depth for depth in range(9) if styles.find(f"{A}lvl{depth + 1}pPr/{A}buNone") is not None)
