"""The rules of a PDF page, straight lines and edges of boxes, as pdfium has them: no second reader parses the page."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from ingestion.extract.pdf_lines import Box, upright

MAX_OBJECTS = 10_000
# More are a drawing or a map.
MAX_RULES = 2_000
FORM_DEPTH = 3
# Points: what is thinner is a line, what is shorter as well a dot.
THIN = 3.0
STRAIGHT = 0.5
BOX_SEGMENTS = 5
LINE, BOX, SHADE = "line", "box", "shade"


@dataclass(frozen=True, slots=True)
class Rule:
    """`shade`: the edge of a coloured area, which may be a line's background as well as a cell's."""

    box: Box
    upright: bool
    shade: bool = False


def page_rules(page: pdfium.PdfPage, *, turn: int) -> list[Rule]:
    """In coordinates of text with that turn; none where there are too many to be a table's."""
    rules: list[Rule] = []
    for box, kind in _boxes(page):
        rules += _rules(upright(box, turn), kind)
        if len(rules) > MAX_RULES:
            return []
    return rules


def _rules(box: Box, kind: str) -> Iterator[Rule]:
    left, bottom, right, top = box
    width, height = right - left, top - bottom
    if height <= THIN < width:
        middle = (bottom + top) / 2
        yield Rule((left, middle, right, middle), False)
    elif width <= THIN < height:
        middle = (left + right) / 2
        yield Rule((middle, bottom, middle, top), True)
    elif kind != LINE and width > THIN and height > THIN:
        yield from (Rule((left, edge, right, edge), False, kind == SHADE) for edge in (bottom, top))
        yield from (Rule((edge, bottom, edge, top), True, kind == SHADE) for edge in (left, right))


def _boxes(page: pdfium.PdfPage) -> Iterator[tuple[Box, str]]:
    """What is drawn, forms included, and whether it is a straight line, a box or a coloured area."""
    budget = MAX_OBJECTS
    open_forms = [(raw.FPDFPage_GetObject, page, raw.FPDFPage_CountObjects(page), None, 0)]
    while open_forms:
        get, parent, count, matrix, depth = open_forms.pop()
        for index in range(min(count, budget)):
            element = get(parent, index)
            kind = raw.FPDFPageObj_GetType(element) if element else None
            if kind == raw.FPDF_PAGEOBJ_PATH:
                for box, what in _path_boxes(element):
                    yield (matrix.on_rect(*box) if matrix else box), what
            elif kind == raw.FPDF_PAGEOBJ_FORM and depth < FORM_DEPTH:
                inner = _matrix(element)
                chained = inner.multiply(matrix) if matrix else inner
                open_forms.append((raw.FPDFFormObj_GetObject, element, raw.FPDFFormObj_CountObjects(element), chained, depth + 1))
        budget -= min(count, budget)


def _path_boxes(path: ctypes.c_void_p) -> Iterator[tuple[Box, str]]:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    if raw.FPDFPath_GetDrawMode(path, fill, stroke) and not fill.value and not stroke.value:
        return
    count = raw.FPDFPath_CountSegments(path)
    if count <= BOX_SEGMENTS:
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        if raw.FPDFPageObj_GetBounds(path, left, bottom, right, top):
            what = LINE if count < BOX_SEGMENTS - 1 else BOX if stroke.value else SHADE
            yield (left.value, bottom.value, right.value, top.value), what
        return
    yield from _edges(path, min(count, 2 * MAX_RULES))


def _edges(path: ctypes.c_void_p, count: int) -> Iterator[tuple[Box, str]]:
    """The straight lines along the axes of a path with many."""
    matrix = _matrix(path)
    x, y = ctypes.c_float(), ctypes.c_float()
    start = last = (0.0, 0.0)
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        if not raw.FPDFPathSegment_GetPoint(segment, x, y):
            continue
        point = matrix.on_point(x.value, y.value)
        match raw.FPDFPathSegment_GetType(segment):
            case raw.FPDF_SEGMENT_MOVETO:
                start = point
            case raw.FPDF_SEGMENT_LINETO:
                yield from _edge(last, point)
        last = point
        if raw.FPDFPathSegment_GetClose(segment):
            yield from _edge(last, start)
            last = start


def _edge(one: tuple[float, float], other: tuple[float, float]) -> Iterator[tuple[Box, str]]:
    if abs(one[0] - other[0]) < STRAIGHT or abs(one[1] - other[1]) < STRAIGHT:
        yield (min(one[0], other[0]), min(one[1], other[1]), max(one[0], other[0]), max(one[1], other[1])), LINE


def _matrix(element: ctypes.c_void_p) -> pdfium.PdfMatrix:
    matrix = raw.FS_MATRIX()
    return pdfium.PdfMatrix.from_raw(matrix) if raw.FPDFPageObj_GetMatrix(element, matrix) else pdfium.PdfMatrix()
