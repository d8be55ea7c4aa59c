"""Figures over time as an inline SVG. Pure; text that comes in is escaped. Beside it belongs a table with the same numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

# Told apart by colour, dashes and marks, so that neither colour nor print is needed. Readable on light and dark ground.
_STYLES = (("#2563eb", "", "circle"), ("#d97706", "6 3", "square"), ("#059669", "2 3", "diamond"), ("#db2777", "8 3 2 3", "triangle"))
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 28, 40
_MARK = 3.5


@dataclass(frozen=True, slots=True)
class Moment:
    """A place on the time axis. `said` is shown when a mark is pointed at."""

    label: str
    said: str


def draw_lines(
    title: str, moments: Sequence[Moment], series: Mapping[str, Sequence[float | None]], *, width: int = 460, height: int = 230
) -> str:
    """A line for each series over equally spaced moments, the axis from 0 to 1; a value that is None breaks its line."""
    across, up = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM
    step = across / max(len(moments) - 1, 1)

    def at(place: int, value: float) -> tuple[float, float]:
        middle = across / 2 if len(moments) == 1 else place * step
        return round(_LEFT + middle, 1), round(_TOP + (1 - min(max(value, 0.0), 1.0)) * up, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f' aria-label="{escape(_told(title, moments, series))}" font-size="11" fill="currentColor">',
        f'<text x="{_LEFT}" y="16" font-size="13" font-weight="600">{escape(title)}</text>',
        *_grid(width, up),
        *_labels(moments, [at(place, 0.0)[0] for place in range(len(moments))], height),
    ]
    for (name, values), (colour, dashes, mark) in zip(series.items(), _cycle(len(series)), strict=True):
        points = [None if value is None else (*at(place, value), value, moments[place]) for place, value in enumerate(values)]
        parts += _line(name, points, colour, dashes, mark)
    return "".join([*parts, "</svg>"])


def draw_legend(names: Sequence[str]) -> str:
    """What the lines of `draw_lines` stand for, in the same order."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{110 * len(names)}" height="18" font-size="12" fill="currentColor" role="img"'
    ]
    parts.append(f' aria-label="{escape("Lines: " + ", ".join(names))}">')
    for place, (name, (colour, dashes, mark)) in enumerate(zip(names, _cycle(len(names)), strict=True)):
        x = 110 * place
        parts.append(f'<line x1="{x}" y1="9" x2="{x + 26}" y2="9" stroke="{colour}" stroke-width="2"{_dashed(dashes)}/>')
        parts.append(_mark(mark, x + 13, 9, colour, ""))
        parts.append(f'<text x="{x + 32}" y="13">{escape(name)}</text>')
    return "".join([*parts, "</svg>"])


def _cycle(count: int) -> list[tuple[str, str, str]]:
    return [_STYLES[place % len(_STYLES)] for place in range(count)]


def _told(title: str, moments: Sequence[Moment], series: Mapping[str, Sequence[float | None]]) -> str:
    """The picture in words: where each line ends."""
    last = [f"{name} {values[-1]:.3f}" for name, values in series.items() if values and values[-1] is not None]
    return f"{title} over {len(moments)} evaluations. Latest: {', '.join(last) or 'none'}. The table holds all figures."


def _grid(width: int, up: int) -> list[str]:
    parts = []
    for tenth in (0, 2, 4, 6, 8, 10):
        y = round(_TOP + (1 - tenth / 10) * up, 1)
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{width - _RIGHT}" y2="{y}" stroke="currentColor" stroke-opacity=".15"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{tenth / 10:.1f}</text>')
    return parts


def _labels(moments: Sequence[Moment], places: Sequence[float], height: int) -> list[str]:
    """As many as fit: the first and the last always."""
    every = max(1, -(-len(moments) // 5))
    shown = [place for place in range(len(moments)) if place % every == 0]
    if moments and shown[-1] != len(moments) - 1:
        shown = [place for place in shown if place <= len(moments) - 1 - every / 2] + [len(moments) - 1]
    anchors = {0: "start", len(moments) - 1: "end"} if len(moments) > 1 else {}
    return [
        f'<text x="{places[place]}" y="{height - 16}" text-anchor="{anchors.get(place, "middle")}">{escape(moments[place].label)}</text>'
        for place in shown
    ]


def _line(name: str, points: Sequence[tuple[float, float, float, Moment] | None], colour: str, dashes: str, mark: str) -> list[str]:
    parts, stroke = [], []
    for point in [*points, None]:
        if point is not None:
            stroke.append(f"{point[0]},{point[1]}")
        elif stroke:
            joined = " ".join(stroke)
            parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"{_dashed(dashes)}/>')
            stroke = []
    for x, y, value, moment in filter(None, points):
        parts.append(_mark(mark, x, y, colour, f"{name} {value:.4f}, {moment.said}"))
    return parts


def _dashed(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _mark(kind: str, x: float, y: float, colour: str, said: str) -> str:
    told = f"<title>{escape(said)}</title>" if said else ""
    if kind == "circle":
        return f'<circle cx="{x}" cy="{y}" r="{_MARK}" fill="{colour}">{told}</circle>'
    corners = {
        "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "diamond": ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
        "triangle": ((0, -1.3), (1.2, 1), (-1.2, 1)),
    }[kind]
    points = " ".join(f"{round(x + dx * _MARK, 1)},{round(y + dy * _MARK, 1)}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}">{told}</polygon>'
