"""The language of a text, as an ISO 639-1 code. The model costs about 90 MB and half a second, once a process, when first asked."""

from functools import lru_cache
from typing import Any

SAMPLE_CHARS = 2_000
# Mostly a few lines settle it; what they leave in doubt is decided by the whole sample. Measured on 32 languages: as right, and cheaper.
BRIEF_CHARS = 300
SETTLED = 0.98
MIN_LETTERS = 24
MIN_CONFIDENCE = 0.5

_without = False


def detect_language(text: str) -> str | None:
    """None when the text is too short or the answer too uncertain to be worth more than "unknown"."""
    sample = _sample(text)
    if _without or not _has_letters(sample):
        return None
    start = max(0, len(sample) - BRIEF_CHARS) // 2
    language, confidence = _identifier().classify(sample[start : start + BRIEF_CHARS])
    if confidence < SETTLED and len(sample) > BRIEF_CHARS:
        language, confidence = _identifier().classify(sample)
    return language if len(language) == 2 and confidence >= MIN_CONFIDENCE else None


def _has_letters(text: str) -> bool:
    letters = 0
    for char in text:
        if char.isalpha():
            letters += 2 if char >= "\u2e80" else 1
            if letters >= MIN_LETTERS:
                return True
    return False


def confidence_of(text: str) -> float:
    """How much a text looks like any language at all: tells a right decoding from a wrong one."""
    return 0.0 if _without else float(_identifier().classify(text[:SAMPLE_CHARS])[1])


def load_model() -> None:
    """Now instead of when first asked: loading writes a temporary file, which a process closed in by Landlock may not."""
    _identifier()


def forgo_model() -> None:
    """Know no language from now on: for a process that only looks whether there is text, and has no use for the model's memory."""
    global _without
    _without = True


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
