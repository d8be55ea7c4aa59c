"""Bytes to clean text: byte order mark or pairs of bytes, else UTF-8, else detection, else Windows-1252; never a failure."""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingestion.extract.byte_order import bom_encoding, unmarked_utf16
from ingestion.extract.scripts_of_asia import LEAST_USUAL, is_east_asian, usual_share

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch

# Detection is asked only about encodings that documents are really in: a wider choice makes short texts come out exotic.
CANDIDATES = [
    *("gb18030", "big5", "cp932", "euc_jp", "cp949", "koi8_r"),
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257"),
]
DETECTED_BYTES = 32 * 1024
CHAOS_MARGIN = 0.02
# In so few foreign bytes more encodings than the right one find no fault.
FEW_BYTES = 60
FEW_CHAOS_MARGIN = 0.1
# So many good characters for each bad one still make a damaged UTF-8 file and not another encoding.
DAMAGE_SHARE = 10
LAST_RESORT = "cp1252"
LATIN = frozenset({"cp1252", "iso8859-15", "iso8859-9", "cp1254"})
LATIN_RUN_BYTES = 2.0
# Encodings of seven bits, which are valid UTF-8 too, and what they shift with.
SHIFTS = {"iso2022_jp": b"\x1b", "iso2022_kr": b"\x1b", "hz": b"~{"}

_LINE_ENDS = re.compile(r"\r\n?|\u2028|\u2029|\x85")
# C0 controls but tab and newline, and the C1 block: no reader sees them, Postgres refuses NUL, JSON readers dislike the rest.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Decoded:
    text: str
    encoding: str
    cut: bool
    warnings: list[str]


def decode(raw: bytes, *, cut: bool = False, declared: Sequence[str] = ()) -> Decoded:
    """`cut` says that `raw` is the beginning of more, so that half a character at its end is no error.
    What is `declared`, the best source first, is tried after the byte order mark and UTF-8: labels lie more often than bytes do."""
    encoding, text, warnings = _decode(raw, cut=cut, declared=declared)
    text, more = clean(text)
    return Decoded(text=text, encoding=encoding, cut=cut, warnings=warnings + more)


def clean(text: str) -> tuple[str, list[str]]:
    """Line ends become newlines; NULs, lone surrogates and control characters go, and a warning says so."""
    warnings = []
    if _SURROGATES.search(text):
        text = _SURROGATES.sub("\ufffd", text)
        warnings.append("Lone surrogates were replaced.")
    text = _LINE_ENDS.sub("\n", text.removeprefix("\ufeff"))
    if "\x00" in text:
        warnings.append("NUL characters were removed.")
    return _CONTROLS.sub("", text.replace("\x0c", "\n")), warnings


def _decode(raw: bytes, *, cut: bool, declared: Sequence[str]) -> tuple[str, str, list[str]]:
    marked = bom_encoding(raw) or unmarked_utf16(raw)
    if marked is not None:
        text = codecs.getincrementaldecoder(marked)("replace").decode(raw, final=not cut)
        return marked, text, ["Some bytes could not be read in the file's own encoding."] if "\ufffd" in text else []
    labels = [label for name in declared if (label := _known(name)) is not None]
    shifted = [(label, "strict") for label in labels if (mark := SHIFTS.get(label)) and mark in raw]
    for encoding, errors in (*shifted, ("utf-8", "strict"), ("utf-8", "surrogatepass"), *((label, "strict") for label in labels)):
        if encoding in LATIN and _is_hardly_latin(raw):
            continue
        text = _attempt(raw, encoding, errors, cut=cut)
        if text is not None:
            return encoding, text, []
    text = raw.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    if damaged * DAMAGE_SHARE <= sum(not char.isascii() for char in text) - damaged:
        return "utf-8", text, ["Some bytes were not UTF-8 and were replaced."]
    encoding, is_sure = detect_encoding(raw)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(raw, final=not cut)
    warnings = (
        [] if is_sure else [f"Too little text to tell its encoding: it was read as {encoding}. If letters are wrong, save it as UTF-8."]
    )
    return encoding, text, [*warnings, "Some bytes could not be read and were replaced."] if "\ufffd" in text else warnings


def _attempt(raw: bytes, encoding: str, errors: str, *, cut: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)(errors).decode(raw, final=not cut)
    except UnicodeDecodeError:
        return None


def _is_hardly_latin(raw: bytes) -> bool:
    """Servers say Latin-1 of everything, and all bytes are right in it. Accents stand alone between plain letters; other scripts do not."""
    runs = _HIGH_BYTES.findall(raw)
    return sum(map(len, runs)) > LATIN_RUN_BYTES * len(runs)


def _known(encoding: str) -> str | None:
    """A declared name that Python can decode; web pages that say latin-1 mean Windows-1252."""
    try:
        name = codecs.lookup(encoding.strip()).name
    except (LookupError, ValueError):
        return None
    if name.startswith(("utf-16", "utf-32", "utf-7")) or not codecs.lookup(name)._is_text_encoding:
        return None
    return {"iso8859-1": LAST_RESORT, "ascii": LAST_RESORT, "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932"}.get(name, name)


def detect_encoding(raw: bytes) -> tuple[str, bool]:
    """(encoding, whether no other is as likely)."""
    from charset_normalizer import from_bytes

    from ingestion.extract.language import confidence_of

    sample = _sample(raw)
    matches = list(from_bytes(sample, cp_isolation=CANDIDATES, enable_fallback=False))
    if not matches:
        return LAST_RESORT, True
    matches, is_sure = _plausible(matches, raw=sample)
    least = matches[0].chaos + CHAOS_MARGIN
    likely = [match for match in matches if match.chaos <= least]
    names = {name for match in likely for name in (match.encoding, *match.could_be_from_charset)}
    if LAST_RESORT in names and matches[0].encoding in ("cp1250", "cp1254", "cp1257"):
        return LAST_RESORT, True
    # Cyrillic, Hebrew and Arabic code pages fit each other's bytes without chaos; only as language they differ.
    return max(likely, key=lambda match: confidence_of(str(match))).encoding, is_sure


def _plausible(matches: "list[CharsetMatch]", *, raw: bytes) -> "tuple[list[CharsetMatch], bool]":
    """Those that read usual signs, where one does; and whether they agree, which a few East Asian bytes may not."""
    usual = [match for match in matches if usual_share(str(match), match.encoding) >= LEAST_USUAL] or matches
    if sum(map(len, _HIGH_BYTES.findall(raw))) > FEW_BYTES:
        return usual, True
    near = [match for match in usual if match.chaos <= usual[0].chaos + FEW_CHAOS_MARGIN]
    return usual, not (is_east_asian(usual[0].encoding) and len({str(match) for match in near}) > 1)


def _sample(raw: bytes) -> bytes:
    """A piece that begins with the file and ends with a line, so that no character is cut in half."""
    sample = raw[:DETECTED_BYTES]
    end = sample.rfind(b"\n") if len(raw) > len(sample) else -1
    return sample[:end] if end > DETECTED_BYTES // 2 else sample
