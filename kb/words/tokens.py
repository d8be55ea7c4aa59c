"""Where words begin and end, scripts without spaces included.

A token is a run of letters, marks, digits and underscores, with what is joined to it by the signs of identifiers (`foo.bar`, `AB-1234`,
`a@b.org`, `src/x.py`, `std::sort`); identifiers.py takes it apart. A run of a script without spaces is a token of its own.
"""

import itertools
import re

import regex

# Han, kana and Hangul with the marks that repeat and lengthen them; Thai, Lao, Khmer and Myanmar.
_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\u30FC\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_JOIN = r"(?:[./\\:@&\-]{1,3}|(?<=\d),(?=\d))"
# The repeat is bounded: one token is one entry of a cache, whatever the text is.
_SHAPE = r"[{word}]+(?:{join}[{word}]+){{0,15}}(?:\+\+|\#(?![{word}]))?"

_ASCII_TOKEN = re.compile(_SHAPE.format(word="A-Za-z0-9_", join=_JOIN))
_EUROPEAN_TOKEN = re.compile(_SHAPE.format(word=r"\w", join=_JOIN))
_TOKEN = regex.compile(
    rf"[{_SPACELESS}][{_SPACELESS}\p{{M}}]*|" + _SHAPE.format(word=rf"[\w\p{{M}}]--[{_SPACELESS}]", join=_JOIN), regex.VERSION1
)
# Beyond Latin, Greek, Cyrillic and general punctuation: only such text needs the slower module, which knows marks and scripts.
_FURTHER = re.compile("[\u0300-\u036f\u0483-\u1dff\u203f\u2040\u20d0-\u20ff\u2c00-\U0010ffff]")
_SPACELESS_START = regex.compile(rf"[{_SPACELESS}]", regex.VERSION1)
_CLUSTER = regex.compile(r"\P{M}\p{M}*", regex.VERSION1)


def tokens(text: str) -> list[str]:
    """Of normalised text (folding.normalise), in order, case kept."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    return (_TOKEN if _FURTHER.search(text) else _EUROPEAN_TOKEN).findall(text)


def is_spaceless(token: str) -> bool:
    return token[0] > "\u0dff" and _SPACELESS_START.match(token) is not None


def bigrams(run: str) -> list[str]:
    """Overlapping pairs of characters, each with its marks; a single character stands for itself."""
    clusters = list(run) if run.isalpha() and run[0] > "\u2e7f" else _CLUSTER.findall(run)
    if len(clusters) < 2:
        return clusters
    return [first + second for first, second in itertools.pairwise(clusters)]
