"""A connection URL of Postgres as Django's settings; libpq itself reads it, so every form that psql takes is taken."""

from typing import Any

_ACCEPTED = "postgresql://user:password@host:5432/name?sslmode=require, or postgresql://user@/name?host=/socket/folder"


def database_config(url: str) -> dict[str, Any]:
    """ValueError is one sentence that never repeats the URL: a password may be in it."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    if not url.startswith(("postgres://", "postgresql://")):
        scheme = url.split("://", 1)[0] if "://" in url else ""
        found = f"the scheme {scheme!r}" if scheme.replace("+", "").isalnum() else "no scheme"
        raise ValueError(f"it has {found}; accepted is {_ACCEPTED}")
    try:
        parts: dict[str, Any] = dict(conninfo_to_dict(url))
    except ProgrammingError as error:
        detail = str(error).strip()
        shown = f": {detail}" if detail.startswith("invalid URI query parameter") else ""
        advice = "write special characters of the password percent-encoded (@ as %40, / as %2F, % as %25)"
        raise ValueError(f"it cannot be read{shown}; {advice}; accepted is {_ACCEPTED}") from None
    name = parts.pop("dbname", "")
    if not name:
        raise ValueError(f"it names no database; accepted is {_ACCEPTED}")
    ports = str(parts.pop("port", "") or "")
    if any(not port.isdigit() or not 1 <= int(port) <= 65535 for port in ports.split(",") if port):
        raise ValueError("it has a port that is not between 1 and 65535")
    return {
        "ENGINE": "config.postgres",
        "NAME": name,
        "USER": parts.pop("user", "") or "",
        "PASSWORD": parts.pop("password", "") or "",
        "HOST": parts.pop("host", "") or "",
        "PORT": ports,
        "OPTIONS": parts,
    }
