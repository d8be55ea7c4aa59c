"""Where the embedded services keep their data, and as which user they run.

Postgres refuses to run as root, so root lends the work to an ordinary account. That account must be able to enter the folder, which
a project below root's own home directory does not allow.
"""

import hashlib
import os
import pwd
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from config.embedded.failures import ServiceError

PROJECT = Path(__file__).resolve().parents[2]
STATE_DIRECTORY = Path("/var/db" if sys.platform == "darwin" else "/var/lib") / "lectern"


@dataclass(frozen=True, slots=True)
class Account:
    """An entry of the passwd database, with every group the account is a member of."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


def account(name: str | None = None, *, uid: int | None = None) -> Account | None:
    """The account with that name or number, or None where the system has none."""
    try:
        entry = pwd.getpwnam(name) if name is not None else pwd.getpwuid(os.geteuid() if uid is None else uid)
    except KeyError:
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)))


def server_account(folder: Path) -> Account:
    """Who runs the servers: ourselves, or as root the owner of the data in `folder`, else SUDO_USER, postgres or nobody."""
    if os.geteuid() != 0:
        own = account()
        if own is None:
            raise ServiceError(
                f"The user id {os.geteuid()} has no entry in the passwd database, which Postgres needs to make a database. "
                "Run as a user that has one, or set DATABASE_URL and REDIS_URL to servers of your own."
            )
        return own
    data = folder / "postgres"
    owner = account(uid=data.stat().st_uid) if data.exists() else None
    for found in (owner, *(account(name) for name in (os.environ.get("SUDO_USER"), "postgres", "nobody") if name)):
        if found is not None and found.uid != 0:
            return found
    raise ServiceError(
        "Postgres refuses to run as root, and there is no account named postgres or nobody to lend it to. "
        "Run as an ordinary user, or set DATABASE_URL and REDIS_URL to servers of your own."
    )


def barred(path: Path, user: Account) -> Path | None:
    """The first existing folder on the way to `path`, itself included, that the user may not enter; None if the way is free."""
    for folder in [*reversed(path.parents), path]:
        try:
            status = folder.stat()
        except FileNotFoundError:
            return None
        except PermissionError:
            return folder
        if status.st_uid == user.uid:
            allowed = status.st_mode & stat.S_IXUSR
        elif status.st_gid in user.groups:
            allowed = status.st_mode & stat.S_IXGRP
        else:
            allowed = status.st_mode & stat.S_IXOTH
        if not allowed:
            return folder
    return None


def home() -> Path:
    """LECTERN_HOME; else `.lectern` in the project; else, as root where the servers' user cannot enter it, a system folder."""
    chosen = os.environ.get("LECTERN_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    usual = PROJECT / ".lectern"
    if os.geteuid() != 0 or barred(usual, server_account(usual)) is None:
        return usual
    return STATE_DIRECTORY / f"{PROJECT.name}-{hashlib.sha256(os.fsencode(PROJECT)).hexdigest()[:12]}"


def prepare_home(folder: Path) -> Account:
    """Make the folder and say where it is if that is not the usual place; refuse one that the servers' user cannot enter."""
    user = server_account(folder)
    fresh = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log").mkdir(exist_ok=True, mode=0o700)
        if fresh:
            # The servers' user passes through to its own folders; nobody lists this one.
            folder.chmod(0o711 if os.geteuid() == 0 else 0o700)
    except OSError as error:
        raise ServiceError(
            f"{folder} cannot be made or written ({error.strerror}). Set LECTERN_HOME to a folder that you may write."
        ) from error
    closed = barred(folder, user)
    if closed is not None:
        raise ServiceError(
            f"Postgres runs as the user {user.name}, who cannot enter {closed}. Set LECTERN_HOME to a folder that {user.name} can reach, "
            "or leave it unset for one below the system's state directory."
        )
    if fresh and STATE_DIRECTORY in folder.parents:
        print(f"lectern: the user {user.name}, who runs the database, cannot enter {PROJECT}; data are kept in {folder}", file=sys.stderr)
    return user


def own_folder(path: Path, user: Account) -> Path:
    """A folder that belongs to the servers' user alone, made if absent."""
    path.mkdir(exist_ok=True, mode=0o700)
    if os.geteuid() == 0 and path.stat().st_uid != user.uid:
        os.chown(path, user.uid, user.gid)
    return path
