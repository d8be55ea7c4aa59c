"""Runs of formatted text to one line of Markdown; the same for every format that has runs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

MAX_TARGET_CHARS = 300
SCHEMES = ("http://", "https://", "mailto:")


@dataclass(frozen=True, slots=True)
class Run:
    """`raw` text is Markdown already (an equation, a note's mark): no emphasis is put around it."""

    text: str
    bold: bool = False
    italic: bool = False
    target: str = ""
    raw: bool = False


def inline_markdown(runs: Iterable[Run], *, plain: bool = False) -> str:
    """Neighbours of one format become one. `plain` leaves out emphasis and links, as in headings. Lines stay lines."""
    if plain:
        return _trimmed("".join(run.text for run in runs))
    parts: list[str] = []
    merged = _merged(runs)
    for position, run in enumerate(merged):
        before = parts[-1] if parts else ""
        after = merged[position + 1].text if position + 1 < len(merged) else ""
        apart = not (_is_joined(before, run.text) or _is_joined(run.text, after))
        parts.append(_linked(_emphasised(run, apart=apart), run.target))
    return _trimmed("".join(parts))


def _is_joined(left: str, right: str) -> bool:
    """Whether a mark between them would stand within a word."""
    return left[-1:].isalnum() and right[:1].isalnum()


def link_once(runs: list[Run], *, known: set[str]) -> list[Run]:
    """A table that names an address in each of its rows says it once: it would outweigh the words."""
    new = {run.target for run in runs if run.target} - known
    known |= new
    return [run if run.target in new or not run.target else replace(run, target="") for run in runs]


def _merged(runs: Iterable[Run]) -> list[Run]:
    found: list[Run] = []
    for key, group in groupby(runs, key=lambda run: replace(run, text="")):
        text = "".join(run.text for run in group)
        if not text:
            continue
        if not text.strip() and found and not key.target:
            found[-1] = replace(found[-1], text=found[-1].text + text)  # a space has no format
        else:
            found.append(replace(key, text=text))
    return found


def _emphasised(run: Run, *, apart: bool) -> str:
    mark = "**" * run.bold + "*" * run.italic
    inner = run.text.strip()
    if run.raw or not mark or not inner or "*" in inner or "\n" in inner or not apart:
        return run.text
    return run.text.replace(inner, f"{mark}{inner}{mark}", 1)


def _linked(text: str, target: str) -> str:
    """Only targets that lead somewhere for a reader: a place within the file does not."""
    inner = text.strip()
    if not inner or not target.lower().startswith(SCHEMES) or len(target) > MAX_TARGET_CHARS or "](" in inner:
        return text
    target = target.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    return text.replace(inner, f"[{' '.join(inner.split())}]({target})", 1)


def _trimmed(text: str) -> str:
    """White space as one space, but for line ends."""
    return "\n".join(line for part in text.split("\n") if (line := " ".join(part.split())))
