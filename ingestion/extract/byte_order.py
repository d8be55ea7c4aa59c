"""Encodings that the bytes of a text show before a letter is read: byte order marks, and UTF-16 whose mark is missing."""

import codecs
import unicodedata

BOMS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
LOOKED_AT_BYTES = 8_192
# Zeros stand in one half of each pair of bytes but for few letters, such as U+4E00.
OTHER_HALF_SHARE = 0.2
# Characters that Unicode has not assigned, or not yet.
UNKNOWN_SHARE = 0.005
_SPACES = "\t\n\r\f\v\ufeff"


def bom_encoding(head: bytes) -> str | None:
    return next((encoding for mark, encoding in BOMS if head.startswith(mark)), None)


def unmarked_utf16(head: bytes) -> str | None:
    """utf-16-le or utf-16-be where the bytes are text in it and in nothing else: half of the bytes of plain letters are zeros."""
    head = head[: LOOKED_AT_BYTES - LOOKED_AT_BYTES % 2]
    big, little = head[0::2].count(0), head[1::2].count(0)
    if len(head) < 4 or min(big, little) > max(big, little) * OTHER_HALF_SHARE or not max(big, little):
        return None
    encoding = "utf-16-le" if little > big else "utf-16-be"
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return None
    categories = [unicodedata.category(char) for char in text if char not in _SPACES]
    if "Cc" in categories or sum(category in ("Cn", "Co") for category in categories) > len(categories) * UNKNOWN_SHARE:
        return None
    return encoding
