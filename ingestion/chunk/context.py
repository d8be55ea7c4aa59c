from __future__ import annotations

from collections.abc import Sequence

from ingestion.chunk.base import Counter
from ingestion.chunk.blocks import leading_headings
from ingestion.chunk.ruler import counting

SEPARATOR = " > "


def contextual_text(title: str, heading_path: Sequence[str], text: str, *, count: Counter, reserve: int = 32) -> str:
    """The text that is embedded: a line `title > heading > heading`, an empty line, the chunk.

    Headings with which the chunk itself begins are left out, the title too when it repeats the first heading. The line takes at most
    `reserve` tokens: middle headings go first, then the end of what is left.
    """
    line = context_line(title, heading_path, text, count=count, reserve=reserve)
    return f"{line}\n\n{text}" if line else text


def context_line(title: str, heading_path: Sequence[str], text: str, *, count: Counter, reserve: int = 32) -> str:
    """The line above the text in `contextual_text`; empty when there is nothing to say that the text does not say itself."""
    count = counting(count)
    title = " ".join(title.split())
    path = [" ".join(heading.split()) for heading in heading_path]
    path = [heading for heading in path if heading]
    if path and title.casefold() == path[0].casefold():
        title = ""
    own = {heading.casefold() for heading in leading_headings(text)}
    while path and path[-1].casefold() in own:
        path.pop()
    parts = ([title] if title and title.casefold() not in own else []) + [heading for heading in path if heading.casefold() not in own]
    # A title may be a whole paragraph; more characters than these never fit and would only be tokenised in vain.
    parts = [part[: reserve * 16] for part in parts]
    while parts and count(SEPARATOR.join(parts)) > reserve:
        if len(parts) > 2:
            parts.pop(len(parts) // 2)
            continue
        return _trimmed(SEPARATOR.join(parts), count, reserve)
    return SEPARATOR.join(parts)


def _trimmed(line: str, count, reserve: int) -> str:
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        if count(line[:middle].rstrip()) <= reserve:
            low = middle
        else:
            high = middle - 1
    kept = line[:low]
    if low < len(line) and not line[low].isspace() and " " in kept:
        kept = kept[: kept.rindex(" ")]
    return kept.rstrip().removesuffix(SEPARATOR.rstrip()).rstrip()
