"""Rows of cells to a Markdown table."""

from collections.abc import Sequence


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the header; short rows are filled, empty rows and empty columns at the end dropped. "" without any cell."""
    cleaned = [[_cell(cell) for cell in row] for row in rows]
    cleaned = [row for row in cleaned if any(row)]
    width = max((len(_trimmed(row)) for row in cleaned), default=0)
    if not width:
        return ""
    lines = [f"| {' | '.join((row + [''] * width)[:width])} |" for row in cleaned]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\|", "|").replace("|", "\\|")


def _trimmed(row: list[str]) -> list[str]:
    end = len(row)
    while end and not row[end - 1]:
        end -= 1
    return row[:end]
