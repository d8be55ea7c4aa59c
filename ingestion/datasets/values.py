"""Values of SQL as JSON can hold them, so that no program that reads the answer gets another number than was meant."""

import base64
import datetime as dt
import math
from decimal import Decimal
from typing import Any

MAX_ANSWER_BYTES = 4 * 1024 * 1024
# What programs that know only doubles can tell apart.
MAX_SAFE_INTEGER = 2**53 - 1
SAFE_DIGITS = 15
PER_VALUE = 4  # quotes, comma


def plain(value: Any) -> Any:
    """Numbers stay numbers where a double holds them exactly, else they are texts; dates and times are ISO 8601, bytes are base64; what is
    no number (NaN, infinity) is a text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def size_of(value: Any) -> int:
    """About the bytes of a plain value as JSON."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "replace")) + PER_VALUE
    if isinstance(value, dict):
        return sum(size_of(key) + size_of(item) for key, item in value.items()) + PER_VALUE
    if isinstance(value, list):
        return sum(map(size_of, value)) + PER_VALUE
    return 12


def _decimal(value: Decimal) -> int | float | str:
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value() and abs(value) <= MAX_SAFE_INTEGER:
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    return float(value) if len(value.as_tuple().digits) <= SAFE_DIGITS else format(value, "f")
