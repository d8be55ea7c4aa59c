"""One spelling for one word: compatibility forms, case and accents, the same for documents, queries and exact matches."""

import re
import unicodedata

# Letters that Unicode does not take apart.
_LETTERS = {
    "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ŧ": "t", "þ": "th", "æ": "ae", "œ": "oe", "ß": "ss", "ſ": "s",
}  # fmt: skip
# Not a letter and not a break: soft hyphen, joiners, byte order mark. (The zero-width space does separate words.)
_INVISIBLE = dict.fromkeys((0x00AD, 0x200C, 0x200D, 0x2060, 0xFEFF))
# Letters of one sound that are written now this way and now that: alef with a hamza or a madda, the Persian yeh and kaf, alef maksura, and
# the nasal dot of Devanagari beside its moon.
_VARIANTS = {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ک": "ك", "ँ": "ं"}
# The dot below of letters that came with Persian words and is left out as often as written; that of ड़ and ढ़ makes another letter.
_NUKTA = re.compile("(?<=[कखगजफ])\u093c")
# צה"ל and צה״ל are one word, ג'ירפה too.
_GERSHAYIM = re.compile("(?<=[\u05d0-\u05ea])[\"'\u05f3\u05f4\u2019](?=[\u05d0-\u05ea])")
# The breve of й makes another letter; so do the marks of Indic scripts, kana and Hangul, which lie outside these ranges.
_KEPT = frozenset("йЙ")
_ACCENTED = ((0x00C0, 0x0250), (0x0370, 0x0530), (0x1E00, 0x2000))
# Accents that compose with nothing, Hebrew points, Arabic vowel signs and the stretching tatweel.
_MARKS = (
    (0x0300, 0x0370),
    (0x0591, 0x05BE),
    (0x05BF, 0x05C0),
    (0x05C1, 0x05C3),
    (0x05C4, 0x05C6),
    (0x0640, 0x0641),
    (0x064B, 0x0653),
    (0x0670, 0x0671),
)


def _fold_table() -> dict[int, str | None]:
    table: dict[int, str | None] = {ord(letter): plain for letter, plain in (_LETTERS | _VARIANTS).items()}
    for first, last in _ACCENTED:
        for point in range(first, last):
            letter = chr(point)
            base = "".join(c for c in unicodedata.normalize("NFD", letter) if not 0x0300 <= ord(c) < 0x0370)
            if base and base != letter and letter not in _KEPT:
                table[point] = _LETTERS.get(base, base)
    for first, last in _MARKS:
        table.update(dict.fromkeys(range(first, last)))
    return table


_FOLD = _fold_table()


def normalise(text: str) -> str:
    """Compatibility forms (full width, ligatures, superscripts) become plain, invisible characters go. Case stays: camelCase needs it."""
    if text.isascii():
        return text
    return _GERSHAYIM.sub("", unicodedata.normalize("NFKC", text.translate(_INVISIBLE)))


def fold(word: str) -> str:
    """Without accents: `café` is `cafe`, `Ångström` (casefolded) is `angstrom`; й stays й."""
    return word if word.isascii() else _NUKTA.sub("", word).translate(_FOLD)


def plain(text: str) -> str:
    """Normalised, casefolded, folded and with single spaces: the form in which phrases are compared."""
    return " ".join(fold(normalise(text).casefold()).split())
