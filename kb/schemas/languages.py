"""Languages that a knowledge base can be set to: those that the word index stems, those without spaces, and `simple`."""

from kb.words.languages import CODES as _STEMMED

# Cut into pairs of characters or taken as they stand; a setting spares the detection.
_UNSTEMMED = {"zh": "chinese", "ja": "japanese", "ko": "korean", "th": "thai"}
NAMES: dict[str, str] = {**_STEMMED, **_UNSTEMMED}  # ISO 639-1 code -> name
_CODES = {name: code for code, name in reversed(NAMES.items())}  # of several codes the first is the language's own


def check_language(value: str) -> str:
    """`auto`, `simple` (no stemming), a name or a code; ValueError lists what there is."""
    text = value.strip().lower()
    if text in ("auto", "simple") or text in NAMES or text in _CODES:
        return text
    known = ", ".join(f"{name} ({code})" for name, code in sorted(_CODES.items()))
    raise ValueError(f"'{value[:50]}' is not known. Write auto, simple, or one of: {known}.")


def language_code(value: str) -> str | None:
    """The ISO code of a checked language; None for `auto` and `simple`."""
    if value in ("auto", "simple"):
        return None
    return value if value in NAMES else _CODES[value]
