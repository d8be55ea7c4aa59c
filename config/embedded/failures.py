"""The one error of this package."""

from config.errors import Unavailable


class ServiceError(Unavailable):
    """An embedded service cannot start, stop or be reached; the message says what to do."""

    code = "embedded_service"
