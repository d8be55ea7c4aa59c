"""Passwords of the embedded services and the installation's secret key: generated once, kept in one file that only we can read."""

import json
import os
import secrets
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from config.embedded.failures import ServiceError


def _generated() -> str:
    return field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Credentials:
    superuser_password: str = _generated()
    owner_password: str = _generated()
    app_password: str = _generated()
    valkey_password: str = _generated()
    secret_key: str = _generated()


def _path(home: Path) -> Path:
    return home / "credentials.json"


def read_credentials(home: Path) -> Credentials | None:
    """What the file says, or None where there is none yet; a file of somebody else is an error that says so."""
    path = _path(home)
    try:
        return Credentials(**json.loads(path.read_text()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise ServiceError(f"{path} belongs to another user. Run as that user, or set LECTERN_HOME to a folder of your own.") from error
    except (ValueError, TypeError) as error:
        names = ", ".join(field.name for field in fields(Credentials))
        raise ServiceError(
            f"{path} is damaged (expected a JSON object with {names}). Restore it from a backup: the database's passwords and the key "
            "of the stored secrets are in it."
        ) from error


def make_credentials(home: Path) -> Credentials:
    """Read the file, or write a new one (mode 0600). Call it with the home's lock held, or from `secret_key`."""
    known = read_credentials(home)
    if known is not None:
        return known
    if (home / "postgres" / "data").exists():
        raise ServiceError(
            f"{_path(home)} is missing, and the database beside it was made with its passwords. Restore it from a backup, or move "
            f"{home} away to start empty."
        )
    fresh = Credentials()
    scratch = home / f".credentials.{os.getpid()}"
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(fresh), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(scratch, _path(home))  # unlike a rename, never replaces what another process wrote in between
    except FileExistsError:
        return make_credentials(home)
    finally:
        scratch.unlink()
    return fresh


def secret_key(home: Path) -> str:
    """The installation's LECTERN_SECRET_KEY, generated at the first call; needs no running service."""
    known = read_credentials(home)
    if known is None:
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)
            known = make_credentials(home)
        except OSError as error:
            raise ServiceError(f"{home} cannot be written ({error.strerror}). Set LECTERN_HOME or LECTERN_SECRET_KEY.") from error
    return known.secret_key
