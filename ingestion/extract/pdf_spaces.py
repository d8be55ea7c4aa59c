"""Spaces that pdfium did not see: between two words of the page that stand apart."""

import re
from collections.abc import Callable

# Looking at a letter's place costs; only words are looked at that two words of the page make up.
MIN_CHARS, MAX_CHARS = 7, 40
MIN_PART = 3
# Of the font's size: letters of one word stand closer.
GAP = 0.15
_WORD = re.compile(r"[^\W\d_]+")


def words_of(text: str) -> set[str]:
    return set(_WORD.findall(text))


def with_spaces(text: str, known: set[str], *, size: float, gap: Callable[[int], float]) -> str:
    """`gap(index)` is the distance in points between the characters before and at the index."""
    for match in reversed(list(_WORD.finditer(text))):
        word, start = match[0], match.start()
        if not MIN_CHARS <= len(word) <= MAX_CHARS:
            continue
        for cut in range(MIN_PART, len(word) - MIN_PART + 1):
            if word[:cut] in known and word[cut:] in known and gap(start + cut) > GAP * size:
                text = f"{text[: start + cut]} {text[start + cut :]}"
                break
    return text
