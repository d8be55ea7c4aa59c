"""A child of the sandbox whose extractor was taken over: it does what the file says. `python -m tests.ingestion.extract.hostile …`"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from ingestion.extract import child
from ingestion.extract.base import Extracted, ExtractedFile, Limits, Served
from ingestion.extract.formats import EXTRACTORS


class HostileExtractor:
    """The file is a JSON list of [deed, arguments…]; the Markdown is a JSON list of what came of each: null or the error's name."""

    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None, outbox: Path | None = None) -> Extracted:
        results = []
        for deed, *arguments in json.loads(data.read_text()):
            try:
                results.append(DEEDS[deed](outbox, *arguments))
            except OSError as error:
                if deed == "write_honestly":
                    raise
                results.append(type(error).__name__ if error.errno is None else os.strerror(error.errno))
        files = [ExtractedFile(path, path, "text/plain", "attachment", {"n": 1}) for path in (sorted(os.listdir(outbox)) if outbox else [])]
        if name.startswith("liar"):
            files.append(ExtractedFile("more", "never-written", "text/plain", "attachment"))
        return Extracted(markdown=json.dumps(results), title=name, media_type="text/plain", files=files)


def _write(outbox: Path | None, name: str, size: int, count: int = 1) -> None:
    """`count` files, one mebibyte at a time. "/" in the name leads out of the outbox."""
    block = b"x" * min(size, 1 << 20)
    for number in range(count):
        with open((outbox or Path()) / (name if count == 1 else f"{name}-{number}"), "wb") as file:
            for _ in range(size // len(block)):
                file.write(block)


def _raise_limits(outbox: Path | None) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _link(outbox: Path | None, name: str) -> None:
    """The lent file, a hard link to somebody's stored bytes, under a name that may be written."""
    lent = outbox.parents[1] / outbox.name  # type: ignore[union-attr]
    os.link(lent, outbox / name)  # type: ignore[operator]


DEEDS: dict[str, Callable[..., object]] = {
    "read": lambda outbox, path: Path(path).read_bytes() and None,
    "write": _write,
    "write_honestly": _write,
    "raise_limits": _raise_limits,
    "symlink": lambda outbox, target: os.symlink(target, outbox / "link"),
    "mkdir": lambda outbox: os.mkdir(outbox / "folder"),
    "link": _link,
}

if __name__ == "__main__":
    EXTRACTORS._loaded["text"] = HostileExtractor
    child.main(sys.argv[1:])
