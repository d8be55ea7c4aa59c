"""Settings from environment variables, read once, typed, and loud: what cannot be read ends the process with one sentence per variable."""

import difflib
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from config.addresses import AllowedNetwork, parse_networks
from config.database_url import database_config

__all__ = ["Environment", "database_config", "environment", "environment_secret", "variable_names"]

PREFIX = "LECTERN_"
SECRET_PREFIX = "LECTERN_SECRET__"  # noqa: S105 - a prefix, not a secret
# Kubernetes sets these in every pod beside a service named "lectern"; LECTERN_PORT=tcp://… is one of them.
_SERVICE_LINK = re.compile(r"LECTERN_(\w+_)?(SERVICE_HOST|SERVICE_PORT\w*|PORT_\d+_(TCP|UDP)\w*)")
UNPREFIXED = ("database_url", "database_owner_url", "redis_url")


def _listed(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _postgres(value: str) -> str:
    if value:
        database_config(value)
    return value


def _redis(value: str) -> str:
    if value and not value.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("its scheme is not known; accepted is redis://:password@host:6379/0, rediss:// for TLS, or unix:///path?db=0")
    return value


def _origins(value: Any) -> Any:
    wrong = [origin for origin in _listed(value) if not re.match(r"https?://[^/]+$", origin)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} must have a scheme and no path, such as https://kb.example.org")
    return _listed(value)


def _networks(value: Any) -> Any:
    return parse_networks(value) if isinstance(value, str) else value


Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]
PostgresUrl = Annotated[str, BeforeValidator(_postgres), Field(repr=False)]


def _secret(description: str, default: str | None = "", **constraints: Any) -> Any:
    """A field whose value is never shown: not in a message, not in a repr."""
    return Field(default, repr=False, description=description, **constraints)


class Environment(BaseSettings):
    """Field NAME is variable LECTERN_NAME; `LECTERN_NAME_FILE` names a file that holds the value; an empty variable counts as absent."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, hide_input_in_errors=True, validate_default=False)

    secret_key: str = _secret("signs sessions and encrypts secrets: 32 or more random characters", min_length=32)
    secret_key_previous: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(
        (), repr=False, description="earlier values of LECTERN_SECRET_KEY, comma-separated: what they encrypted can still be read"
    )
    debug: bool = Field(False, description="tracebacks in the browser; never in production")
    allowed_hosts: Listed = Field(("localhost", "127.0.0.1", "[::1]"), description="host names that the web process answers to")
    csrf_trusted_origins: Annotated[tuple[str, ...], BeforeValidator(_origins)] = Field(
        (), description="origins such as https://kb.example.org"
    )
    home: Path | None = Field(None, description="folder of the embedded services and of stored files")
    port: int = Field(8000, ge=1, le=65535, description="port of the web process")
    site_url: str = Field(
        "", pattern=r"^(https?://[^\s/]+(/[^\s]*)?)?$", description="public address of this installation, such as https://kb.example.org"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="least severe log line that is written")

    database_url: PostgresUrl = _secret("Postgres of web and workers (role lectern_app); absent: an embedded one is started")
    database_owner_url: PostgresUrl = _secret("Postgres of migrations (the owner); absent: LECTERN_DATABASE_URL")
    redis_url: Annotated[str, BeforeValidator(_redis)] = _secret("Redis or Valkey; absent: an embedded one is started")
    db_pool_size: int = Field(8, ge=1, le=500, description="most database connections of one web process")
    db_answer_seconds: float = Field(
        10, ge=1, le=3600, description="longest statement of a web request; then it is cancelled and the answer is 503"
    )
    provision_lock_timeout_ms: int = Field(2000, ge=100, le=600_000, description="wait for the lock of a new partition")

    allowed_private_networks: Annotated[tuple[AllowedNetwork, ...], BeforeValidator(_networks)] = Field(
        (), description="private networks that URLs given by people may reach: NETWORK:PORTS, comma-separated, such as 10.1.0.0/16:443"
    )
    max_upload_bytes: int = Field(100_000_000, ge=1, le=5_000_000_000, description="largest file of POST /files and of resumable uploads")
    max_signed_upload_bytes: int = Field(
        10 * 1024 * 1024, ge=1, le=50 * 1024 * 1024, description="largest file of a signed upload in one piece"
    )
    storage: Literal["file", "s3"] = Field("file", description="where files are kept")
    s3_bucket: str = Field("", description="bucket; needed with LECTERN_STORAGE=s3")
    s3_endpoint: str | None = Field(None, pattern=r"^(https?://\S+)?$", description="endpoint of an S3-compatible service; absent: AWS")
    s3_public_endpoint: str | None = Field(
        None, pattern=r"^(https?://\S+)?$", description="endpoint that browsers reach, for signed uploads; absent: LECTERN_S3_ENDPOINT"
    )
    s3_region: str | None = Field(None, description="region of the bucket")
    s3_access_key: str | None = _secret("access key; absent: what the machine's role grants", None)
    s3_secret_key: str | None = _secret("secret key of the access key", None)

    min_schedule_interval: int = Field(60, ge=1, le=86_400, description="fewest seconds between two fires of a schedule")
    sweep_seconds: float = Field(5, ge=0.1, le=3600, description="how often lost wake-ups are sent again")
    slice_seconds: float = Field(20, ge=0.1, le=600, description="how long one task works before it hands over")
    lease_seconds: float = Field(120, ge=0.5, le=3600, description="how long a worker owns what it took; longer than a slice")
    dead_run_seconds: float = Field(900, ge=1, le=86_400, description="a run without progress for so long is dead")
    max_run_hours: float = Field(48, gt=0, le=720, description="longest run")
    trace_days: int = Field(30, ge=0, le=3650, description="days that traces of retrievals are kept; 0: for ever")
    model_grace_days: float = Field(
        7, ge=0, le=365, description="days that the vectors of a model stay after a knowledge base has left it, for the way back"
    )
    reembed_rate: float = Field(
        0, ge=0, le=100_000, description="most chunks a second that a change of model embeds for one knowledge base; 0: no limit"
    )
    embed_threads: int = Field(0, ge=0, le=1024, description="threads of the local embedding model; 0: every core")
    recognize_memory_mb: int = Field(1536, ge=256, le=65_536, description="memory of the child that recognizes text and speech")
    recognize_seconds: float = Field(60, ge=1, le=600, description="longest recognition of one page, picture or stretch of speech")
    speech_model: str = Field("", description="folder of a faster-whisper model; absent: the packaged one, which knows English")
    ocr_languages: Listed = Field(("eng",), description="languages of text recognition, as Tesseract names them: eng,deu")
    extract_children: int = Field(2, ge=1, le=64, description="child processes of one extract worker")
    sandbox: Literal["kernel", "limits"] = Field(
        "kernel", description="what holds the processes that read files; limits: time and memory only, where the kernel offers no more"
    )
    extract_memory_mb: int = Field(512, ge=128, le=65_536, description="memory of one extract child")
    query_seconds: float = Field(10, ge=0.1, le=600, description="longest query of datasets")

    @model_validator(mode="after")
    def _agree(self) -> "Environment":
        if self.storage == "s3" and not self.s3_bucket:
            raise ValueError("LECTERN_S3_BUCKET is not set, but LECTERN_STORAGE is s3: set the bucket, or LECTERN_STORAGE=file")
        if bool(self.s3_access_key) != bool(self.s3_secret_key):
            raise ValueError("LECTERN_S3_ACCESS_KEY and LECTERN_S3_SECRET_KEY go together: set both or neither")
        if self.lease_seconds <= self.slice_seconds:
            both = f"LECTERN_LEASE_SECONDS ({self.lease_seconds:g}) must be longer than LECTERN_SLICE_SECONDS ({self.slice_seconds:g})"
            raise ValueError(both)
        return self

    @property
    def public_url(self) -> str:
        """Where people reach this installation, without a slash at the end."""
        return (self.site_url or f"http://localhost:{self.port}").rstrip("/")

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, **_: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, Variables(settings_cls)


class Variables(PydanticBaseSettingsSource):
    """The process's variables, by field name; pydantic-settings' own source would read lists as JSON and knows no NAME_FILE."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return read_variable(os.environ, *variable_names(field_name)), field_name, False

    def __call__(self) -> dict[str, Any]:
        found = {name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()}
        return {name: value for name, value in found.items() if value is not None}


def variable_names(field_name: str) -> list[str]:
    """The variables that set a field, the strongest first."""
    names = [PREFIX + field_name.upper()]
    return [*names, field_name.upper()] if field_name in UNPREFIXED else names


def read_variable(variables: Mapping[str, str], *names: str) -> str | None:
    """The first of `names` that is set, directly or as NAME_FILE; ValueError when both are, or when the file cannot be read."""
    for name in names:
        value, path = variables.get(name, "").strip(), variables.get(f"{name}_FILE", "").strip()
        if value and path:
            raise ValueError(f"{name} and {name}_FILE are both set: keep one of them")
        if value.startswith(("tcp://", "udp://")):
            continue
        if path:
            try:
                return Path(path).read_text(encoding="utf-8").strip() or None
            except (OSError, UnicodeError) as error:
                reason = f"{name}_FILE names {path!r}, which cannot be read ({type(error).__name__}): give a readable text file"
                raise ValueError(reason) from None
        if value:
            return value
    return None


def environment_secret(name: str) -> str | None:
    """The value of `${secret:NAME}` when the operator gave it as LECTERN_SECRET__NAME (or LECTERN_SECRET__NAME_FILE)."""
    return read_variable(os.environ, SECRET_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", name).upper())


@cache
def environment() -> Environment:
    """The settings of this process; SystemExit with a sentence for each variable that cannot be read or is not known."""
    problems = _unknown(os.environ)
    try:
        settings = Environment()
    except ValidationError as error:
        problems += [_sentence(entry) for entry in error.errors(include_input=False, include_url=False)]
    except ValueError as error:
        problems.append(f"{error}.")
    if problems:
        raise SystemExit("Lectern cannot start.\n" + "\n".join(problems))
    return settings


def _unknown(variables: Mapping[str, str]) -> list[str]:
    known = [name for field in Environment.model_fields for name in variable_names(field)]
    known += [f"{name}_FILE" for name in known]
    ours = (
        name for name in variables if name.startswith(PREFIX) and not name.startswith(SECRET_PREFIX) and not _SERVICE_LINK.fullmatch(name)
    )
    return [_unknown_sentence(name) for name in sorted(set(ours) - set(known))]


def _unknown_sentence(name: str) -> str:
    # Compared without the prefix, which would make everything look alike.
    fields = [field.upper() for field in Environment.model_fields]
    close = difflib.get_close_matches(name.removeprefix(PREFIX), fields, n=3, cutoff=0.7)
    hint = f"did you mean {' or '.join(PREFIX + field for field in close)}?" if close else "remove it, or correct its name."
    return f"{name} is not a setting of Lectern: {hint}"


def _sentence(entry: Any) -> str:
    if not entry["loc"]:
        return f"{entry['ctx']['error']}."
    name = str(entry["loc"][0])
    field = Environment.model_fields[name]
    variable = next((n for n in variable_names(name) if os.environ.get(n) or os.environ.get(f"{n}_FILE")), variable_names(name)[0])
    if entry["type"] == "value_error":
        return f"{variable} is wrong: {entry['ctx']['error']}."
    found = "has a value that" if not field.repr else f"is {os.environ.get(variable, '')!r}, which"
    return f"{variable} {found} is not accepted. Accepted: {_accepted(field) or field.description}."


def _accepted(field: FieldInfo) -> str:
    if field.annotation is bool:
        return "true or false"
    if get_origin(field.annotation) is Literal:
        return "one of " + ", ".join(map(str, get_args(field.annotation)))
    if field.annotation in (int, float):
        low, high = _bound(field, "ge", "gt"), _bound(field, "le", "lt")
        return f"a {'whole ' if field.annotation is int else ''}number from {low} to {high}"
    return ""


def _bound(field: FieldInfo, *kinds: str) -> Any:
    return next(getattr(rule, kind) for rule in field.metadata for kind in kinds if getattr(rule, kind, None) is not None)
