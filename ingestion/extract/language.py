"""The language of a text, as an ISO 639-1 code. The model costs about 90 MB and half a second, once a process, when first asked."""

from functools import lru_cache
from typing import Any

SAMPLE_CHARS = 2_000
MIN_LETTERS = 24
MIN_CONFIDENCE = 0.5


def detect_language(text: str) -> str | None:
    """None when the text is too short or the answer too uncertain to be worth more than "unknown"."""
    sample = _sample(text)
    letters = sum(2 if ord(char) >= 0x2E80 else 1 for char in sample if char.isalpha())
    if letters < MIN_LETTERS:
        return None
    language, confidence = _identifier().classify(sample)
    return language if len(language) == 2 and confidence >= MIN_CONFIDENCE else None


def confidence_of(text: str) -> float:
    """How much a text looks like any language at all: tells a right decoding from a wrong one."""
    return float(_identifier().classify(text[:SAMPLE_CHARS])[1])


def load_model() -> None:
    """Now instead of when first asked: loading writes a temporary file, which a process closed in by Landlock may not."""
    _identifier()


def _sample(text: str) -> str:
    # Beginnings are often titles and menus: half of the sample comes from the middle.
    if len(text) <= SAMPLE_CHARS:
        return text
    middle = len(text) // 2
    return text[: SAMPLE_CHARS // 2] + "\n" + text[middle : middle + SAMPLE_CHARS // 2]


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
