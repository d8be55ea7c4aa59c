"""Which stemmer and which stop words a language has. Anything unknown is `simple`: words as they stand, none left out."""

import json
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import Stemmer

from kb.words.folding import fold

SIMPLE = "simple"

# ISO 639-1 codes, as a language detector gives them, to the names of the Snowball algorithms.
CODES = {
    "ar": "arabic",
    "hy": "armenian",
    "eu": "basque",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "nl": "dutch",
    "en": "english",
    "eo": "esperanto",
    "et": "estonian",
    "fi": "finnish",
    "fr": "french",
    "de": "german",
    "el": "greek",
    "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian",
    "ga": "irish",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "no": "norwegian",
    "nb": "norwegian",
    "nn": "norwegian",
    "fa": "persian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "es": "spanish",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
# A stemmer that the installed Snowball lacks leaves its language `simple` on both sides alike.
LANGUAGES = frozenset(CODES.values()) & frozenset(Stemmer.algorithms())

_stemmers = threading.local()


def language_name(language: str | None) -> str:
    """`en`, `en-GB`, `English` and `english` are one language; unknown, empty, `auto` and None are `simple`."""
    name = (language or "").strip().lower().replace("_", "-")
    name = CODES.get(name.split("-", 1)[0], name)
    return name if name in LANGUAGES else SIMPLE


def stem_function(name: str) -> Callable[[str], str] | None:
    """None where nothing is stemmed. A Stemmer holds a buffer and must not be shared between threads: each thread gets its own."""
    if name not in LANGUAGES:
        return None
    known: dict[str, Callable[[str], str]] | None = getattr(_stemmers, "known", None)
    if known is None:
        known = _stemmers.known = {}
    if name not in known:
        # Without its own cache: the forms of a word are cached one level up.
        known[name] = Stemmer.Stemmer(name, 0).stemWord
    return known[name]


@cache
def stop_words(name: str) -> frozenset[str]:
    """Folded, because they are compared with folded words. Lists: Snowball (BSD licence), shorter ones of our own where it has none."""
    return frozenset(fold(word.casefold()) for word in _lists().get(name, "").split())


@cache
def _lists() -> dict[str, str]:
    return json.loads(Path(__file__).with_name("stopwords.json").read_text(encoding="utf-8"))
