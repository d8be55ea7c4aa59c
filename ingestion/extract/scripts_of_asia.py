"""How usual the signs of a decoding are: bytes of one East Asian encoding are valid in the others, but make what nobody writes."""

from collections.abc import Mapping

# (lead bytes of what is written every day, least trail byte): kana, Hangul of KS X 1001, and the first level of each national set.
_USUAL: Mapping[str, tuple[range, int]] = {
    "cp932": (range(0x81, 0x98), 0x40),
    "euc_jp": (range(0xA1, 0xD0), 0xA1),
    "cp949": (range(0xA1, 0xC9), 0xA1),
    "gb18030": (range(0xA1, 0xD8), 0xA1),
    "big5": (range(0xA1, 0xC7), 0x40),
}
LEAST_USUAL = 0.7


def usual_share(text: str, encoding: str) -> float:
    """Of the characters beyond ASCII, those that are usual in text of the encoding; 1.0 for every other encoding."""
    if encoding not in _USUAL:
        return 1.0
    leads, least = _USUAL[encoding]
    foreign = [char for char in text if not char.isascii()]
    written = (char.encode(encoding, "ignore") for char in foreign)
    return sum(len(pair) == 2 and pair[0] in leads and pair[1] >= least for pair in written) / (len(foreign) or 1)


def is_east_asian(encoding: str) -> bool:
    return encoding in _USUAL
