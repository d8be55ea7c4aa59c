"""Folders for the children that extract and render, named after the process that made them: so it can be told whose is left."""

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Literal

import psutil

_NAME = re.compile(r"lectern-(?:extract|render)-([1-9]\d{0,9})-\w+")


def make_scratch(purpose: Literal["extract", "render"] = "extract") -> Path:
    return Path(tempfile.mkdtemp(prefix=f"lectern-{purpose}-{os.getpid()}-"))


def clear_scratch() -> list[Path]:
    """Remove what processes left that were killed: folders of ours with exactly such a name, whose process lives no more."""
    cleared = []
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            named = _NAME.fullmatch(entry.name)
            with suppress(OSError):
                if named and entry.is_dir(follow_symlinks=False) and _ours(entry) and not _lives(int(named[1])):
                    shutil.rmtree(entry.path, ignore_errors=True)
                    cleared.append(Path(entry.path))
    return cleared


def _ours(entry: os.DirEntry[str]) -> bool:
    return entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OverflowError):
        return True
