"""Tables with merged cells as rows of equal columns: what is merged is said in every cell, so that each row can be read by itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_ROWS, MAX_COLUMNS = 5_000, 64


@dataclass(frozen=True, slots=True)
class Cell:
    """`columns` and `rows` count what the cell covers, itself included."""

    text: str
    columns: int = 1
    rows: int = 1


def spread(rows: Iterable[Sequence[Cell]]) -> list[list[str]]:
    """A row hangs under cells of rows above. One cell over a whole row of several columns is said once: it is a caption."""
    grid: list[list[str]] = []
    hanging: dict[int, tuple[str, int]] = {}
    for row in rows:
        if len(grid) >= MAX_ROWS:
            break
        line: list[str] = []
        alone = len(row) == 1 and not hanging
        for cell in row:
            _hang(line, hanging)
            for offset in range(min(max(1, cell.columns), MAX_COLUMNS - len(line))):
                text = "" if alone and offset else cell.text
                if cell.rows > 1:
                    hanging[len(line)] = (text, cell.rows - 1)
                line.append(text)
        _hang(line, hanging)
        grid.append(line)
    return grid


def _hang(line: list[str], hanging: dict[int, tuple[str, int]]) -> None:
    while len(line) in hanging and len(line) < MAX_COLUMNS:
        text, left = hanging.pop(len(line))
        if left > 1:
            hanging[len(line)] = (text, left - 1)
        line.append(text)
