"""HTTP library errors and answers as errors of ours: the one place that decides whether trying again may help."""

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpcore
import httpx

from config.addresses import NameNotResolved
from config.errors import InvalidInput, LecternError, PermanentProviderError, ProviderError, TransientProviderError

# 408 and 425 ask for another try, 409 of model providers means "busy"; other 4xx say that the request is wrong.
RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 507, 508, 520, 521, 522, 523, 524, 529})

# What httpcore raises when it is used without httpx.
WIRE_ERRORS = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)

_KINDS = {
    "InvalidURL": "url",
    "UnsupportedProtocol": "url",
    "TimeoutException": "timeout",
    "TooManyRedirects": "answer",
    "DecodingError": "answer",
    "LocalProtocolError": "answer",
    "StreamError": "answer",
    "HTTPError": "connection",
    "NetworkError": "connection",
    "ProtocolError": "connection",
}
# How h11 and httpcore begin or end the messages of an answer that broke off.
_BROKEN_OFF = re.compile(r"peer closed connection|disconnected|Server disconnected|StreamReset|ConnectionTerminated")


def shown(url: httpx.URL | str) -> str:
    """A URL as a message may hold it: without user, password, query and fragment, where keys are."""
    try:
        parsed = httpx.URL(str(url))
        if not parsed.host:
            return "the address"
        port = f":{parsed.port}" if parsed.port else ""
        host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
        return f"{parsed.scheme}://{host}{port}{parsed.path}"[:300]
    except (httpx.InvalidURL, ValueError):
        return "the address"


@contextmanager
def mapped(url: httpx.URL | str) -> Iterator[None]:
    """Inside, every error of the HTTP library leaves as an error of ours."""
    try:
        yield
    except LecternError:
        raise
    except Exception as error:
        if _kind(error) is None:
            raise
        raise map_error(error, url) from error


def map_error(error: Exception, url: httpx.URL | str) -> LecternError:
    """Timeouts and broken connections are transient; a wrong address, a bad certificate and an unknown name are not."""
    where = shown(url)
    kind = _kind(error)
    if kind == "url":
        return InvalidInput(f"{where} is not an address that can be requested: {error}. Correct the URL.")
    if kind == "timeout":
        doing = "accept a connection" if type(error).__name__ == "ConnectTimeout" else "answer"
        return TransientProviderError(f"{where} did not {doing} in time. It is tried again, or raise the time limit.")
    for cause in _causes(error):
        if isinstance(cause, NameNotResolved):
            return _failure(f"{where} cannot be reached: {cause} Check the host name.", transient=cause.transient)
        if isinstance(cause, ssl.SSLCertVerificationError):
            return PermanentProviderError(f"The certificate of {where} is not accepted ({cause.verify_message}). Correct it at the server.")
    if kind == "answer":
        return PermanentProviderError(f"{where} answered in a way that cannot be read: {error}.")
    reason = str(error) or type(error).__name__
    if "RemoteProtocolError" in type(error).__name__:
        what = "ended early" if _BROKEN_OFF.search(reason) else "cannot be read"
        return TransientProviderError(f"The answer of {where} {what} ({reason[:200]}). Check the server; it may be tried again.")
    return TransientProviderError(f"{where} cannot be reached ({reason}). Check that it is up; it may be tried again.")


def _kind(error: BaseException) -> str | None:
    """By class name: httpx, httpx2 and httpcore share their names and no base class, and most processes have no use for both."""
    if isinstance(error, UnicodeError):
        return "url"
    names = {cls.__name__ for cls in type(error).__mro__ if cls.__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore")}
    return next((kind for name, kind in _KINDS.items() if name in names), None)


def _failure(message: str, *, transient: bool) -> ProviderError:
    return TransientProviderError(message) if transient else PermanentProviderError(message)


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    for _ in range(10):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__


def status_error(status: int, headers: Mapping[str, str], *, what: str) -> ProviderError | None:
    """The error that an answer's status stands for, or None below 400. `what` begins the sentence ("The model provider")."""
    if status < 400:
        return None
    if status in RETRYABLE or status >= 500:
        wait = retry_after(headers)
        return TransientProviderError(f"{what} answered {status}; it may be tried again.", retry_after=wait, upstream_status=status)
    hint = "Check its credential." if status in (401, 403) else "Check its address and parameters."
    return PermanentProviderError(f"{what} answered {status}. {hint}", upstream_status=status)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by the Retry-After header (a number or a date), never negative; None without a readable one."""
    value = (headers.get("retry-after") or headers.get("Retry-After") or "").strip()
    if not value:
        return None
    if value.replace(".", "", 1).isascii() and value.replace(".", "", 1).isdigit():
        return min(float(value), 86_400.0)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # also a year that no date has
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max(0.0, (moment - datetime.now(UTC)).total_seconds()), 86_400.0)
