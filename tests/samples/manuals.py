"""A real site: the HTML of Debian's manual of PostgreSQL 15, which the package manager fetches once into a cache."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urldefrag, urljoin

from lxml import html

PACKAGE = "postgresql-doc-15"
CACHE = Path(tempfile.gettempdir()) / f"lectern-manual-{os.getuid()}"


class NotHere(Exception):
    """Why the manual cannot be had on this machine."""


def postgresql_manual() -> Path:
    """The folder of its pages. Raises `NotHere`."""
    folder = CACHE / PACKAGE / "usr" / "share" / "doc" / PACKAGE / "html"
    if (folder / "index.html").exists():
        return folder
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise NotHere(f"{PACKAGE} is a package of Debian, and there is no apt-get here.")
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        _run("apt-get", "-q", "download", PACKAGE, folder=scratch)
        (package,) = Path(scratch).glob("*.deb")
        _run("dpkg", "-x", package.name, "unpacked", folder=scratch)
        shutil.rmtree(CACHE / PACKAGE, ignore_errors=True)
        (Path(scratch) / "unpacked").rename(CACHE / PACKAGE)
    return folder


def _run(*command: str, folder: str) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=120)
    except (subprocess.SubprocessError, OSError) as error:
        words = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
        raise NotHere(f"{' '.join(command)} did not work: {''.join(words)}") from error


def pages_within(folder: Path, start: str, *, depth: int) -> set[str]:
    """Names of the pages that links lead to in so many steps, found without any code of ours."""
    seen, level = {start}, {start}
    for _ in range(depth):
        level = {name for page in level for name in _links(folder, page)} - seen
        seen |= level
    return seen


def _links(folder: Path, page: str) -> set[str]:
    tree = html.fromstring((folder / page).read_bytes())
    names = {urldefrag(urljoin(page, link.get("href")))[0] for link in tree.iter("a") if link.get("href")}
    return {name for name in names if name.endswith(".html") and (folder / name).is_file()}
