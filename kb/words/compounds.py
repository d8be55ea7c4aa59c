"""Words made of words (Bevölkerungsdichte) and where they may be taken apart. Which parts are words, the knowledge base knows. Pure."""

from collections.abc import Collection, Iterator

# Languages that write compounds as one word, of those that have a stemmer.
LANGUAGES = frozenset({"german", "dutch", "swedish", "danish", "norwegian"})
LEAST_LENGTH = 8
LEAST_PART = 4
# What a part weighs beside the word itself. Measured on German questions: .3 to .7 do as well.
WEIGHT = 0.5
# Letters that join parts without belonging to either.
_LINKS = ("", "s", "es", "n", "en", "er", "e")


def may_be_compound(word: str) -> bool:
    return word.isalpha() and LEAST_LENGTH <= len(word) <= 40


def candidates(word: str) -> Iterator[tuple[str, str]]:
    """Two parts each, of folded words, long second parts first: they say what the thing is."""
    for cut in range(LEAST_PART, len(word) - LEAST_PART + 1):
        first, second = word[:cut], word[cut:]
        for link in _LINKS:
            bare = first.removesuffix(link)
            if first.endswith(link) and len(bare) >= LEAST_PART:
                yield bare, second


def split(word: str, known: Collection[str]) -> tuple[str, str] | None:
    """The first candidate of which both parts are words of the knowledge base."""
    return next((pair for pair in candidates(word) if pair[0] in known and pair[1] in known), None)
