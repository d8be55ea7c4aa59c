"""What a person typed, as words to weigh and conditions to check. Nothing typed is an error: what is no syntax is text.

    "exact phrase"   -word   -"a phrase"   prefix*   ERR_CONN_RESET

Words rank; phrases, exclusions and identifiers are compared with the text itself (`Wording`), because a hash cannot tell. A prefix
stands for the words that begin so in the knowledge bases searched (`kb.stores.spellings`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kb.words import compounds, identifiers
from kb.words.analysis import query_words, terms, weighted_terms
from kb.words.folding import fold, normalise, plain
from kb.words.languages import language_name, stop_words
from kb.words.tokens import is_spaceless, tokens

# Of a longer query the beginning counts; 64 of its terms, the rarest, are chosen later, by their frequencies (bm25.query_weights).
MAX_LENGTH = 10_000
MAX_TERMS = 512
MAX_CONDITIONS = 32

_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»「」『』＂", '"'))
_PHRASE = re.compile(r'(?:(?<!\S)(-))?"([^"]*)"')
# Bounded, so that no text makes them search long. A minus sign before a number or a single letter (`-5 degrees`, `gcc -o`) is no exclusion.
_EXCLUDED = re.compile(r"(?<!\S)-((?=[^\W\d_])\w[^\s\"*]{1,200})")
_PREFIX = re.compile(r"(?<![^\s(\[{'])(\w[^\s\"*]{0,60})\*(?!\w)")
# Einfuhr und -ausfuhr: where compounds share a part, the sign stands for it.
_JOINING = frozenset(("und", "oder", "bzw", "sowie", "en", "of", "og", "och", "eller"))
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class WordQuery:
    """`terms` carry weights, to be multiplied by idf; `variants` are the terms of each language, for bm25.ceiling.

    Each of `alike` is one word in several languages, which must weigh the same in each: else the language that has few documents, in
    which every word is rare, would come first. `compounds` may be words made of words. The conditions (phrases, exclusions,
    identifiers) and the prefixes are in the form of folding.plain.
    """

    terms: dict[str, float] = field(default_factory=dict)
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    excluded_terms: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    variants: tuple[frozenset[str], ...] = ()
    alike: tuple[frozenset[str], ...] = ()
    compounds: tuple[str, ...] = ()

    @property
    def names_something(self) -> bool:
        """Whether it asks for something to the letter."""
        return bool(self.phrases or self.identifiers)


def parse_query(text: str, languages: Sequence[str | None]) -> WordQuery:
    """Analysed in each of the languages (none: as it stands), because a knowledge base may hold several. Never raises.

    `excluded_terms` are what a chunk must not hold where an exclusion is one plain word: an index can use them, `-cats` keeps `cat` out.
    """
    rest = normalise(text.translate(_QUOTES)[:MAX_LENGTH])
    phrases: list[str] = []
    excluded: list[str] = []

    def take_phrase(match: re.Match[str]) -> str:
        minus, inner = match.groups()
        phrase = plain(inner)
        if not _WORD.search(phrase):
            return " "
        (excluded if minus else phrases).append(phrase)
        # With its last quote: what follows a quotation (“Model C”-schools) is no exclusion.
        return " " if minus else f' {inner}"'

    def take_excluded(match: re.Match[str]) -> str:
        before = match.string[max(match.start() - 20, 0) : match.start()].split()
        if before and before[-1].casefold().rstrip(".") in _JOINING:
            return match[0]
        excluded.append(_trimmed(match[1]))
        return " "

    prefixes = [_trimmed(match[1]) for match in _PREFIX.finditer(_PHRASE.sub(" ", rest))]
    positive = _EXCLUDED.sub(take_excluded, _PHRASE.sub(take_phrase, rest))
    if not _WORD.search(positive):
        # Nothing but exclusions finds nothing: then the signs were text.
        positive, excluded = rest, []
    per_language, alike = _analysed(positive, list(dict.fromkeys(languages)) or [None])
    return WordQuery(
        terms=_merged(per_language),
        alike=alike,
        compounds=_compounds(positive, languages),
        phrases=_limited(phrases),
        excluded=_limited(excluded),
        excluded_terms=_excluded_terms(excluded, languages),
        prefixes=_limited(prefix for prefix in prefixes if len(prefix) > 1),
        identifiers=_limited(plain(token) for token in tokens(positive) if not is_spaceless(token) and identifiers.is_identifier(token)),
        variants=tuple(frozenset(found) for found in per_language),
    )


def _analysed(text: str, languages: list[str | None]) -> tuple[list[dict[str, float]], tuple[frozenset[str], ...]]:
    """The weighted terms of each language, and the words that are several terms because there are several languages."""
    words = query_words(text, languages)
    if not any(weights for word in words for weights in word):
        # Stop words alone: then they are what is asked for, where they can be found.
        return [weighted_terms(text, language) for language in languages], ()
    per_language: list[dict[str, float]] = [{} for _ in languages]
    alike: dict[frozenset[str], None] = {}
    for word in words:
        for weights, more in zip(per_language, word, strict=True):
            for term, weight in more.items():
                weights[term] = weights.get(term, 0.0) + weight
        if len(terms_of := frozenset().union(*word)) > 1 and all(len(weights) < 3 for weights in word):
            alike[terms_of] = None
    return per_language, tuple(alike) if len(languages) > 1 else ()


def _compounds(text: str, languages: Sequence[str | None]) -> tuple[str, ...]:
    names = {language_name(language) for language in languages} & compounds.LANGUAGES
    if not names:
        return ()
    words = (fold(token.casefold()) for token in tokens(text))
    return _limited(word for word in words if compounds.may_be_compound(word) and not any(word in stop_words(name) for name in names))


def _trimmed(word: str) -> str:
    return plain(word).rstrip(".,;:!?)]}'")


def _limited(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))[:MAX_CONDITIONS]


def _merged(per_language: list[dict[str, float]]) -> dict[str, float]:
    merged: dict[str, float] = {}
    for weights in per_language:
        for term, weight in weights.items():
            merged[term] = max(weight, merged.get(term, 0.0))
    return dict(list(merged.items())[:MAX_TERMS])


def _excluded_terms(excluded: list[str], languages: Sequence[str | None]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for text in excluded:
        for language in languages or (None,):
            found_terms = list(terms(text, language)) if text.isalnum() else []
            if len(found_terms) == 1:
                found[found_terms[0]] = None
    return tuple(found)[:MAX_CONDITIONS]


class Wording:
    """The text of a chunk, prepared once for comparing it to the letter (case, accents and spacing apart)."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = plain(text)

    def holds(self, phrase: str) -> bool:
        """As whole words: `art` is not in `part`. In scripts without spaces anywhere."""
        return _pattern(phrase).search(self._text) is not None

    def names_all(self, query: WordQuery) -> bool:
        """Whether it holds every identifier and every phrase of a query that has any: such a chunk need not be near in meaning."""
        return query.names_something and all(self.holds(wanted) for wanted in (*query.phrases, *query.identifiers))

    def is_excluded(self, query: WordQuery) -> bool:
        return any(self.holds(unwanted) for unwanted in query.excluded)


def _pattern(phrase: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if phrase and _bounded(phrase[0]) else ""
    after = r"(?!\w)" if phrase and _bounded(phrase[-1]) else ""
    # re keeps the latest patterns compiled.
    return re.compile(before + re.escape(phrase) + after)


def _bounded(char: str) -> bool:
    return bool(_WORD.match(char)) and not is_spaceless(char)
