"""The one error tree: a class carries code, HTTP status and whether trying again may help; a message says what happened and what to do."""

from typing import Any, ClassVar


class LecternError(Exception):
    """Anything that a caller is told about. Keyword arguments become members of the problem document: never put a secret there."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    transient: bool = False

    def __init__(self, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.message = message
        self.extra = extra

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with the message alone and lose the extras of a pickled error.
        return (_restore, (type(self), self.message, self.extra, {k: v for k, v in self.__dict__.items() if k not in ("message", "extra")}))


def _restore(cls: type[LecternError], message: str, extra: dict[str, Any], state: dict[str, Any]) -> LecternError:
    error = cls.__new__(cls, message)
    LecternError.__init__(error, message, **extra)
    error.__dict__.update(state)
    return error


class InvalidInput(LecternError):
    """The request or document is wrong; `errors=[{path, message}]` names each place when there are several."""

    code = "invalid_input"
    status = 400


class NotAuthenticated(LecternError):
    code = "not_authenticated"
    status = 401


class Forbidden(LecternError):
    """Can be seen, may not be done; what cannot be seen is NotFound."""

    code = "forbidden"
    status = 403


class NotFound(LecternError):
    """Absent or somebody else's: the same answer, byte for byte, unless a caller passes a message of its own."""

    code = "not_found"
    status = 404

    def __init__(self, message: str = "There is nothing here, or you cannot see it. Check the id.", **extra: Any) -> None:
        super().__init__(message, **extra)


class Gone(LecternError):
    """It was here for a time, and that time is over."""

    code = "gone"
    status = 410


class Conflict(LecternError):
    code = "conflict"
    status = 409


class StaleVersion(Conflict):
    """Somebody published in between; carries both numbers."""

    code = "stale_version"

    def __init__(self, message: str = "", *, expected: int, current: int, **extra: Any) -> None:
        text = message or f"You edited version {expected}, but version {current} is current. Read it, merge your change and send it again."
        super().__init__(text, expected=expected, current=current, **extra)


class PreconditionRequired(LecternError):
    code = "precondition_required"
    status = 428


class TooLarge(LecternError):
    code = "too_large"
    status = 413


class ChecksumMismatch(LecternError):
    """What came is not what was announced."""

    code = "checksum_mismatch"
    status = 422


class IdempotencyMismatch(LecternError):
    code = "idempotency_mismatch"
    status = 422


class TooManyRequests(LecternError):
    """`retry_after` (seconds) also becomes the Retry-After header."""

    code = "too_many_requests"
    status = 429
    transient = True

    def __init__(self, message: str, *, retry_after: float = 1, **extra: Any) -> None:
        super().__init__(message, retry_after=retry_after, **extra)


class Unavailable(LecternError):
    """A service of ours (database, broker, store) does not answer."""

    code = "unavailable"
    status = 503
    transient = True


class ProviderError(LecternError):
    """A service of somebody else (model provider, crawled site) failed. `transient` is per error: trying again may help."""

    code = "provider_error"
    status = 502

    def __init__(self, message: str, *, transient: bool = False, **extra: Any) -> None:
        super().__init__(message, **extra)
        self.transient = transient


class TransientProviderError(ProviderError):
    transient = True

    def __init__(self, message: str, *, retry_after: float | None = None, **extra: Any) -> None:
        if retry_after is not None:
            extra["retry_after"] = retry_after
        super().__init__(message, transient=True, **extra)
        self.retry_after = retry_after


class PermanentProviderError(ProviderError):
    def __init__(self, message: str, **extra: Any) -> None:
        super().__init__(message, transient=False, **extra)


class ExtractionError(LecternError):
    """No text could be got out of a file. `reason` is a short code; `retires` is true when the content itself is at fault,
    so that the version before it may go; a time or memory kill or a storage error leaves it false. `happened` is the message
    without `advice`, which differs between a file that somebody uploaded and one that a crawl met."""

    code = "extraction_failed"
    status = 422

    def __init__(self, happened: str, *, reason: str, advice: str = "", retires: bool = False, **extra: Any) -> None:
        super().__init__(f"{happened} {advice}".rstrip(), reason=reason, **extra)
        self.happened = happened
        self.reason = reason
        self.retires = retires


class StoredDamaged(ExtractionError):
    """Stored bytes are not what was stored, or are gone: waiting does not help, and it says nothing of what the file holds."""

    code = "stored_damaged"
    status = 503

    def __init__(self, happened: str) -> None:
        super().__init__(happened, advice="Restore it from a backup, or upload it again.", reason=self.code, retires=False)
