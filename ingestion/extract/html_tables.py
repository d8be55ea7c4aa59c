"""Tables of an HTML page: data as a Markdown table, layout as the blocks that it holds."""

from typing import TYPE_CHECKING

from ingestion.extract.html_tree import Element, raw_text
from ingestion.extract.tables import markdown_table

if TYPE_CHECKING:
    from ingestion.extract.html_markdown import MarkdownWriter

MAX_ROWS, MAX_COLUMNS = 5_000, 64
# A cell with one of these is a part of the page, not a value.
LAYOUT_CONTENT = ("table", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "article", "section", "blockquote")
LONG_CELL_CHARS = 1_500


def table_blocks(table: Element, writer: "MarkdownWriter", depth: int) -> list[str]:
    rows = _own_rows(table)
    caption = next((child for child in table if child.tag == "caption"), None)
    blocks = [writer.inline(caption, depth + 1).strip()] if caption is not None else []
    if _is_layout(rows):
        return blocks + [block for row in rows for cell in _cells(row) for block in writer.blocks(cell, depth + 1)]
    return [block for block in [*blocks, markdown_table(_grid(rows, writer, depth))] if block]


def _own_rows(table: Element) -> list[Element]:
    """Not those of tables inside it; the head first, wherever it stands."""
    parts = [child for child in table if child.tag in ("thead", "tbody", "tfoot", "tr")]
    parts.sort(key=lambda part: {"thead": 0, "tfoot": 2}.get(part.tag, 1))
    rows = [row for part in parts for row in ([part] if part.tag == "tr" else part.findall("tr"))]
    return [row for row in rows if _cells(row)][:MAX_ROWS]


def _cells(row: Element) -> list[Element]:
    return [cell for cell in row if cell.tag in ("td", "th")]


def _is_layout(rows: list[Element]) -> bool:
    if max((len(_cells(row)) for row in rows), default=0) < 2:
        return not any(cell.tag == "th" for row in rows for cell in _cells(row))
    if any(cell.tag == "th" for cell in _cells(rows[0])):
        return False
    for row in rows:
        for cell in _cells(row):
            if next(cell.iterdescendants(*LAYOUT_CONTENT), None) is not None or len(raw_text(cell)) > LONG_CELL_CHARS:
                return True
    return False


def _grid(rows: list[Element], writer: "MarkdownWriter", depth: int) -> list[list[str]]:
    """Spans over columns leave empty cells; spans over rows repeat their text, so that each row can be read by itself."""
    grid: list[list[str]] = []
    hanging: dict[int, tuple[str, int]] = {}
    for row in rows:
        line: list[str] = []
        for cell in _cells(row):
            _hang(line, hanging)
            text = " ".join(writer.inline(cell, depth + 1).split())
            down = _span(cell, "rowspan")
            for offset in range(min(_span(cell, "colspan"), MAX_COLUMNS - len(line))):
                value = "" if offset else text
                if down > 1:
                    hanging[len(line)] = (value, down - 1)
                line.append(value)
        _hang(line, hanging)
        grid.append(line)
    return grid


def _hang(line: list[str], hanging: dict[int, tuple[str, int]]) -> None:
    while len(line) in hanging and len(line) < MAX_COLUMNS:
        value, left = hanging.pop(len(line))
        if left > 1:
            hanging[len(line)] = (value, left - 1)
        line.append(value)


def _span(cell: Element, name: str) -> int:
    value = (cell.get(name) or "1").strip()
    return min(max(int(value), 1), MAX_ROWS) if value.isdecimal() and len(value) < 6 else 1
