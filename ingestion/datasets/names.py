"""Names of datasets and columns: as people wrote them, but such that SQL can use them."""

import re
import unicodedata
from collections.abc import Sequence

MAX_NAME = 63
MAX_COLUMN_NAME = 200
_NOT_WORD = re.compile(r"[^0-9a-z]+")


def dataset_name(text: str) -> str:
    """A name that SQL takes without quotes: `Sales 2024 (März)` is `sales_2024_marz`. "dataset" where nothing is left."""
    decomposed = unicodedata.normalize("NFKD", text.casefold().replace("ß", "ss"))
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    if not plain.isascii():
        # Words of other scripts stay as they are: SQL takes letters of every script.
        plain = "".join(char if char.isalnum() else "_" for char in plain)
        slug = re.sub("_+", "_", plain).strip("_")
    else:
        slug = _NOT_WORD.sub("_", plain).strip("_")
    slug = slug[:MAX_NAME].strip("_")
    if not slug:
        return "dataset"
    return f"t_{slug}"[:MAX_NAME] if slug[0].isdigit() else slug


def column_names(header: Sequence[str], width: int) -> list[str]:
    """One name for each of `width` columns, no two the same without their case: empty ones are numbered from 1, repeated ones counted.
    Without any header they are f0, f1 …"""
    names: list[str] = []
    seen: set[str] = set()
    for place in range(width):
        written = _clean(header[place]) if place < len(header) else ""
        base = written or (f"column_{place + 1}" if header else f"f{place}")
        name, number = base, 2
        while name.casefold() in seen:
            name, number = f"{base}_{number}", number + 1
        seen.add(name.casefold())
        names.append(name)
    return names


def quoted(name: str) -> str:
    """As an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """As a string in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _clean(name: str) -> str:
    printable = "".join(char if char.isprintable() else " " for char in name)
    return " ".join(printable.split())[:MAX_COLUMN_NAME].strip()
