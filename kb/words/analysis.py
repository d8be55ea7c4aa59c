"""Text to terms, the same way for what is stored and for what is asked.

A word becomes its stem, folded; an accented word also the stem of its unaccented spelling, so that `cafe` finds `café`. Scripts without
spaces become pairs of characters. Identifiers stay whole beside their parts. Stop words of the language are left out.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from kb.words import identifiers
from kb.words.folding import fold, normalise
from kb.words.languages import SIMPLE, language_name, stem_function, stop_words
from kb.words.tokens import bigrams, is_spaceless, tokens

# Raised when the same text yields other terms (rules, stop words, a new Snowball): word rows of another number are built again.
VERSION = 1

# What a word weighs that is a stop word in another language of the query.
STOPPED_ELSEWHERE = 0.1
# A word longer than any beginning that can be asked for.
MOST_WRITTEN = 64
# Words repeat: with the forms of the latest ones at hand, a word costs a look-up instead of a stemming.
_CACHED_WORDS = 65_536
_CACHED_LENGTH = 48


def terms(text: str, language: str | None) -> Counter[str]:
    """How often each term stands in a text. Never raises, whatever the text is."""
    return document_terms(text, language)[0]


def document_terms(text: str, language: str | None) -> tuple[Counter[str], int]:
    """The counts, and the length that BM25 means: words, stop words apart, wholes of identifiers and second spellings not counted twice."""
    name = language_name(language)
    found: list[str] = []
    length = 0
    for token in tokens(normalise(text)):
        if is_spaceless(token):
            pairs = bigrams(token)
            found += pairs
            length += len(pairs)
            continue
        forms, words = (_cached_forms if len(token) <= _CACHED_LENGTH else _forms)(token, name)
        found += forms
        length += words
    return Counter(found), length


def written_words(text: str, language: str | None) -> set[tuple[str, str]]:
    """(word as it is written, folded; its term): what a question that names a beginning looks through. Whole identifiers are words too."""
    name = language_name(language)
    distinct = {token for token in tokens(normalise(text)) if not is_spaceless(token)}
    return {pair for token in distinct for pair in (_cached_written if len(token) <= _CACHED_LENGTH else _written)(token, name)}


def weighted_terms(text: str, language: str | None) -> dict[str, float]:
    """The query's side: each word weighs 1, shared by its spellings; the parts of an identifier weigh 1 together, its whole weighs 1."""
    weights: dict[str, float] = {}
    for word in query_words(text, [language]):
        for term, weight in word[0].items():
            weights[term] = weights.get(term, 0.0) + weight
    return weights


def query_words(text: str, languages: Sequence[str | None]) -> list[list[dict[str, float]]]:
    """For each word of a query, its weighted terms in each of the languages.

    A stop word of one language says little in another: where documents of both are searched, it would be rare and weigh most. In text of an
    unknown language, which has all of them, it says nothing.
    """
    names = [language_name(language) for language in languages]
    found = []
    for token in tokens(normalise(text)):
        bare = fold(token.casefold())
        is_stopped = len(names) > 1 and any(bare in stop_words(name) for name in names)
        words: list[dict[str, float]] = []
        for name in names:
            weights: dict[str, float] = {}
            share = (0.0 if name == SIMPLE else STOPPED_ELSEWHERE) if is_stopped else 1.0
            for term, weight in _weighted(token, name) if share else ():
                weights[term] = weights.get(term, 0.0) + weight * share
            words.append(weights)
        found.append(words)
    return found


def _weighted(token: str, name: str) -> Iterator[tuple[str, float]]:
    if is_spaceless(token):
        yield from ((pair, 1.0) for pair in bigrams(token))
        return
    if len(token) > identifiers.MAX_LENGTH:
        return
    whole, words = _spelled(token, name)
    if whole:
        yield whole, 1.0
    share = 1.0 / len(words) if whole and words else 1.0
    for spellings in words:
        yield from ((spelling, share / len(spellings)) for spelling in spellings)


def _forms(token: str, name: str) -> tuple[tuple[str, ...], int]:
    if len(token) > identifiers.MAX_LENGTH:
        return (), 0
    whole, words = _spelled(token, name)
    found = [spelling for spellings in words for spelling in spellings]
    if whole:
        found.append(whole)
    return tuple(found), max(len(words), 1 if whole else 0)


_cached_forms = lru_cache(maxsize=_CACHED_WORDS)(_forms)


def _written(token: str, name: str) -> tuple[tuple[str, str], ...]:
    if len(token) > identifiers.MAX_LENGTH:
        return ()
    if single := identifiers.one_word(token):
        return ((single, single),)
    whole = _spelled(token, name)[0]
    found = [(fold(token.casefold()), whole)] if whole else []
    for part in identifiers.parts(token):
        for piece in identifiers.humps(part) or (part,):
            found += [(fold(piece.casefold()), spelling) for spelling in _spellings(piece, name)[:1]]
    return tuple(pair for pair in found if 1 < len(pair[0]) <= MOST_WRITTEN)


_cached_written = lru_cache(maxsize=_CACHED_WORDS)(_written)


def _spelled(token: str, name: str) -> tuple[str | None, list[tuple[str, ...]]]:
    """The term of the whole, if it is more than its parts, and the spellings of each word in it that is no stop word."""
    if token.isalpha() and (token.islower() or token.istitle()):
        # Nearly every word: no joints, no humps.
        spelling = _spellings(token, name)
        return None, [spelling] if spelling else []
    if single := identifiers.one_word(token):
        return None, [(single,)]
    whole = identifiers.whole(token)
    words: list[tuple[str, ...]] = []
    for part in identifiers.parts(token):
        pieces = identifiers.humps(part)
        if pieces:
            words += [spelling for spelling in (_spellings(piece, name) for piece in pieces) if spelling]
            if whole is None:
                whole = _stemmed_whole(part, name)
        elif spelling := _spellings(part, name):
            words.append(spelling)
    if whole and len(words) == 1 and whole in words[0]:
        whole = None
    return whole, words


def _stemmed_whole(part: str, name: str) -> str:
    """Stemmed like a word: whoever asks for JavaScript writes `javascript`."""
    stem = stem_function(name)
    word = part.casefold()
    return fold(stem(word)) if stem else word


def _spellings(part: str, name: str) -> tuple[str, ...]:
    # The plural of an acronym (PDFs, URLs): stemmers know no words without vowels.
    word = (part[:-1] if part[-1] == "s" and len(part) > 2 and part[:-1].isupper() else part).casefold()
    bare = fold(word)
    if not bare:
        return ()
    # Two to four capitals are a name: IT, WHO, US.
    if bare in stop_words(name) and not (1 < len(part) <= 4 and part.isupper() and part.isascii()):
        return ()
    stem = stem_function(name)
    if stem is None or name == SIMPLE or bare.isdigit():
        return (bare,)
    stemmed = fold(stem(word)) or bare
    if bare == word:
        return (stemmed,)
    second = fold(stem(bare)) or bare
    return (stemmed,) if second == stemmed else (stemmed, second)
