"""Where a passage stands, in one line. Pure."""

from collections.abc import Sequence


def heading_line(title: str, heading_path: Sequence[str]) -> str:
    """Title and headings, outermost first; a heading that repeats the title is left out, and empty ones are."""
    parts = [title, *(heading for heading in heading_path if heading != title)]
    return " > ".join(" ".join(part.split()) for part in parts if part.strip())
