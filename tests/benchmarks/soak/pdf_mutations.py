"""PDFs that are wrong in a place that matters: numbers, references, names and operators of sound ones, also inside their streams."""

import random
import re
import zlib
from collections.abc import Callable
from functools import cache

from tests.samples.hostile_pdfs import circular_outline_pdf, many_pages_pdf, nested_forms_pdf, one_page, repeated_stream_pdf, stream
from tests.samples.pdf_layouts import book_pdf, form_pdf, mapped_pdf, outlined_pdf, rows_across_pdf, ruled_pdf, turned_pdf
from tests.samples.pdfs import mixed_pdf, table_pdf, text_pdf

PROSE = "the pump valve pressure sensor turns opens before after operator checks line oil filter panel reads value"
NUMBERS = (b"0", b"-1", b"1", b"99999", b"2147483647", b"-2147483648", b"4294967296", b"1e30", b"0.0000001", b"9" * 60, b"null", b"true")
NAMES = (b"/Type", b"/Kids", b"/Parent", b"/Contents", b"/Length", b"/Filter", b"/FlateDecode", b"/LZWDecode", b"/Encrypt", b"/W", b"/Size")
OPERATORS = (
    b"q " * 3_000,
    b"Q ",
    b"BT ",
    b"ET ",
    b"/X Do ",
    b"1e9 0 0 1e9 0 0 cm ",
    b"0 0 0 0 0 0 Tm ",
    b"(" * 500,
    b"[" * 2_000,
    b"-9 Tr ",
    b"<< " * 500,
)
_NUMBER = re.compile(rb"(?<=[ \[])-?\d+(?:\.\d+)?(?=[ \]\r\n/>])")
_REFERENCE = re.compile(rb"(\d+) 0 R")
_NAME = re.compile(rb"/[A-Za-z]\w*")
_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)


@cache
def samples() -> tuple[bytes, ...]:
    words = [f"{PROSE} {number}"[number : number + 38] for number in range(12)]
    return (
        text_pdf([f"{PROSE} {number}" for number in range(5)], title="A title"),
        text_pdf([PROSE], password=""),
        table_pdf("before", [["a", "b"], ["1", "2"]] * 10, "after"),
        rows_across_pdf(words, words[::-1], title=PROSE),
        turned_pdf(90, words, page=270),
        outlined_pdf([(0, "One", PROSE), (1, "Two", PROSE), (0, "Three", PROSE)]),
        book_pdf([PROSE] * 9, header="Manual {page}", footer="Page {page}"),
        mapped_pdf("abc def", {"a": "\u0646", "b": "\u0644\u0625", "c": "\uf0b7", "d": "\ufb01"}),
        ruled_pdf([["a", "b", "c"]] * 6, shades=True),
        mixed_pdf(["text", "scan", "form", "strips", "empty"]),
        many_pages_pdf(40),
        form_pdf(PROSE, {"Name": "Ada", "City": "London"}, note="a note"),
        nested_forms_pdf(5, width=2),
        circular_outline_pdf(),
        repeated_stream_pdf(1, times=3, hidden=True),
        one_page(b"[5 0 R 5 0 R]", stream(b"BT /F1 12 Tf 60 700 Td [(one) -300 (two)] TJ T* (three) ' ET")),
    )


def mutated(chance: random.Random) -> bytes:
    """A sound PDF with one to four things done to it."""
    content = chance.choice(samples())
    for _ in range(chance.choice((1, 1, 2, 4))):
        content = chance.choice(WAYS)(content, chance)
    return content


def _replaced(
    pattern: re.Pattern[bytes], choose: Callable[[random.Random, re.Match[bytes]], bytes]
) -> Callable[[bytes, random.Random], bytes]:
    """One match of the pattern becomes what `choose` gives."""

    def way(content: bytes, chance: random.Random) -> bytes:
        found = list(pattern.finditer(content))
        if not found:
            return content
        match = chance.choice(found)
        return content[: match.start()] + choose(chance, match) + content[match.end() :]

    return way


def _in_stream(content: bytes, chance: random.Random) -> bytes:
    """What one stream unpacks to is changed, and packed again."""

    def change(chance: random.Random, match: re.Match[bytes]) -> bytes:
        try:
            body = bytearray(zlib.decompress(match[1]))
            packed = True
        except zlib.error:
            body, packed = bytearray(match[1]), False
        place = chance.randrange(len(body) + 1)
        body[place : place + chance.choice((0, 1, 20))] = chance.choice(
            (chance.choice(OPERATORS), chance.choice(NUMBERS), chance.randbytes(20))
        )
        return b"stream\n%s\nendstream" % (zlib.compress(bytes(body)) if packed else bytes(body))

    return _replaced(_STREAM, change)(content, chance)


def _flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 5, 50, 500))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(1, len(content))
    return content[:place] if chance.random() < 0.7 else b"%PDF-1.4\n" + content[place:]


def _repeated(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content))
    part = content[start : start + chance.randrange(1, 400)]
    return content[:start] + part * chance.choice((2, 10, 300)) + content[start:]


def _crossed(content: bytes, chance: random.Random) -> bytes:
    other = chance.choice(samples())
    return content[: chance.randrange(1, len(content))] + other[chance.randrange(len(other)) :]


def _reference(chance: random.Random, _: re.Match[bytes]) -> bytes:
    return b"%d 0 R" % chance.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 99, 8_388_607, 99_999_999))


WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flipped,
    _cut,
    _repeated,
    _crossed,
    _in_stream,
    _in_stream,
    _replaced(_NUMBER, lambda chance, _: chance.choice(NUMBERS)),
    _replaced(_NUMBER, lambda chance, _: chance.choice(NUMBERS)),
    _replaced(_NAME, lambda chance, _: chance.choice(NAMES)),
    _replaced(_REFERENCE, _reference),
    _replaced(_REFERENCE, _reference),
)
