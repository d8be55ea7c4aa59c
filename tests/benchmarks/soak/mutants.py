"""Files of every format but PDF with something wrong in them.

Containers are also changed on the inside, part by part, and packed anew: what is only flipped outside is refused by its checksum."""

import random
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from tests.benchmarks.soak.seeds import ENDINGS, parts_of, seeds
from tests.samples.containers import zip_file

NUMBERS = (b"0", b"-1", b"65536", b"2147483648", b"99999999999999999999", b"1e400", b"NaN", b"", b"A1:XFD1048576", b"\xff\xff\xff\xff")
MARKUP = (
    *(b"<", b">", b"</", b'"', b"&", b"]]>", b"&x;", b"<a>" * 300),
    *(b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"<?xml version='1.0' encoding='utf-16'?>"),
)
TEXTS = (
    *(b"\0", b"\r", b"\n" * 50, b'"', b",", b";", b"\t", b"\x1a", b"\xed\xa0\x80", b"\xff\xfe"),
    *(b"[" * 500, b"{" * 500, b"`" * 500, b".. x::", b"\\u"),
)


def _mutant(ending: str, chance: random.Random) -> bytes:
    """One of the sound files with this ending, damaged."""
    return mutated(chance.choice([content for name, content in sorted(_seeds().items()) if name.endswith(f".{ending}")]), chance)


MUTATIONS: dict[str, Callable[[random.Random], bytes]] = {ending: partial(_mutant, ending) for ending in ENDINGS}


@cache
def _seeds() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        return seeds(Path(folder))


def mutated(content: bytes, chance: random.Random) -> bytes:
    """With one to four things done to the bytes, or to those of a part inside."""
    parts = parts_of(content)
    if parts and chance.random() < 0.8:
        return zip_file(_with_wrong_parts(parts, chance))
    for _ in range(chance.choice((1, 1, 2, 4))):
        content = _changed(content, chance)
    return content


def _with_wrong_parts(parts: Mapping[str, bytes], chance: random.Random) -> dict[str, bytes]:
    changed = dict(parts)
    for _ in range(chance.choice((1, 1, 2))):
        part = chance.choice(list(changed))
        match chance.randrange(8):
            case 0 if len(changed) > 1:
                del changed[part]
            case 1:
                changed[part] = chance.choice(list(parts.values()))
            case _:
                changed[part] = _changed(changed[part], chance)
    return changed


def _changed(content: bytes, chance: random.Random) -> bytes:
    if not content:
        return chance.choice(MARKUP)
    place, end = sorted((chance.randrange(len(content)), chance.randrange(len(content) + 1)))
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: content[:place],
        lambda: content[:place] + content[end:],
        lambda: content[:end] + content[place:],
        lambda: content[:place] + content[place:end] * chance.choice((2, 20)) + content[end:],
        lambda: _flipped(content, chance, chance.choice((1, 3, 30))),
        lambda: content[:place] + chance.choice(TEXTS) + content[place:],
        lambda: content[:place] + chance.choice(MARKUP) + content[place:],
        lambda: _other_number(content, chance),
        lambda: _other_number(content, chance),
        lambda: content[:place] + bytes(chance.randrange(256) for _ in range(chance.choice((1, 4, 60)))) + content[place:],
    )
    return chance.choice(ways)()[:2_000_000]


def _flipped(content: bytes, chance: random.Random, number: int) -> bytes:
    changed = bytearray(content)
    for _ in range(number):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _other_number(content: bytes, chance: random.Random) -> bytes:
    """A number in the text is another; in what is no text four bytes are."""
    start = chance.randrange(len(content))
    while start < len(content) and not content[start : start + 1].isdigit():
        start += 1
    end = start
    while end < len(content) and content[end : end + 1].isdigit():
        end += 1
    return content[:start] + chance.choice(NUMBERS) + content[end:]
