"""Files that a child writes beside its Markdown: into a folder of its own, from which its parent takes them.

The child may write nothing else (landlock.py), and no file larger than the limit (RLIMIT_FSIZE); its parent watches the sum. Names are
the child's and thus a stranger's: only plain files directly in the folder are taken, under the name that they have there."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from config.errors import ExtractionError
from ingestion.extract.base import Limits

FOLDER = "outbox"
MOST_FILES = 10_000


def is_overfull(folder: Path, *, most_bytes: int, most_files: int) -> bool:
    """Whether the files below the folder are too many, or hold too much together; a file that goes meanwhile counts as nothing."""
    count = total = 0
    for inside, _, _ in os.walk(folder):
        for _, size in _files(Path(inside)):
            count, total = count + 1, total + size
            if count > most_files or total > most_bytes:  # counting on would give it time to write more
                return True
    return False


def deliver(folder: Path, *, to: Path, reply: Mapping[str, Any], name: str, limits: Limits) -> None:
    """Moves what was written for one request to where it asked for it. Raises ExtractionError if it is too much, or if the reply names a
    file that was not written."""
    written = dict(_files(folder))
    if sum(written.values()) > limits.max_output_bytes or len(written) > MOST_FILES:
        raise ExtractionError(output_sentence(name, limits), reason="output_limit", retires=True)
    named = {file["path"] for file in (reply.get("extracted") or {}).get("files", ()) if file["path"]}
    if missing := named - written.keys():
        raise ExtractionError(
            f"{name} could not be taken apart ({sorted(missing)[0]!r} was not written).", reason="internal", retires=False
        )
    for file in written:
        shutil.move(folder / file, to / file)


def clear(folder: Path) -> None:
    """Empties the folder of a request that is over, and removes it."""
    shutil.rmtree(folder, ignore_errors=True)


def output_sentence(name: str, limits: Limits) -> str:
    return f"What {name} holds is more than {limits.max_output_bytes:,} bytes once it is taken apart. Split it into smaller ones."


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    yield entry.name, entry.stat(follow_symlinks=False).st_size
