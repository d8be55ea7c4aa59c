"""Pages that say "not found" with status 200: told by what a site answers for an address that it cannot have."""

import re
from hashlib import blake2b
from html import unescape
from urllib.parse import unquote

# What stands in these is no text. A comment is left out like an element whose end is an arrow.
_UNSEEN = re.compile(r"<(?:(script|style|template|noscript|svg|head)(?=[\s>/])|(!--))", re.IGNORECASE)
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"[^\W_]+")
# Longer words without a space are tokens; real ones of this length are rare enough not to decide.
_LONGEST_WORD = 30
_MOST_CHARACTERS = 1_000_000


def page_fingerprint(html: bytes | str, *, url: str) -> bytes:
    """A hash of the words of a page, without digits and without the places where it repeats its own address.

    Two pages that say "not found" for different addresses are equal, although they echo the address, a clock or a nonce. Two pages with
    different text are not. No tree is built; at a millisecond a page it is still for sites that answer 200 where they cannot
    have a page."""
    text = html.decode("utf-8", "replace") if isinstance(html, bytes) else html
    words = _words(unescape(_visible(text[:_MOST_CHARACTERS])))
    for echo in _echoes(url):
        words = _without(words, echo)
    return blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=16).digest()


def _visible(html: str) -> str:
    title = _TITLE.search(html)
    pieces = [title[1]] if title else []
    lowered = html.lower()
    if len(lowered) != len(html):
        html = lowered  # İ is two characters in lower case, and positions must agree
    position = 0
    while (match := _UNSEEN.search(html, position)) is not None:
        pieces.append(html[position : match.start()])
        end = "-->" if match[2] else f"</{match[1].lower()}"
        found = lowered.find(end, match.end())
        if found < 0:
            position = len(html)
            break
        position = found + len(end)
    pieces.append(html[position:])
    return _TAG.sub(" ", " ".join(pieces))


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if len(word) <= _LONGEST_WORD and word.isalpha()]


def _echoes(url: str) -> list[list[str]]:
    """How a page may repeat its address: with its query, the path, and its last segment as words; the longest first."""
    path, _, query = url.partition("://")[2].partition("?")
    path = path.partition("/")[2]
    last = path.rstrip("/").rpartition("/")[2]
    echoes = []
    for text in (f"{path} {query}", path, last):
        for spelling in (unquote(text), text):
            words = _words(spelling)
            if words and words not in echoes:
                echoes.append(words)
    return echoes


def _without(words: list[str], echo: list[str]) -> list[str]:
    kept: list[str] = []
    position = 0
    while (start := _index(words, echo[0], position)) is not None:
        kept += words[position:start]
        position = start + len(echo)
        if words[start:position] != echo:
            position = start + 1
            kept.append(echo[0])
    return kept + words[position:]


def _index(words: list[str], word: str, position: int) -> int | None:
    try:
        return words.index(word, position)
    except ValueError:
        return None
