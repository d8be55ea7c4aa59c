from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable

from ingestion.chunk.base import Counter

# A tokenizer may call a word of a megabyte one unknown token. No passage holds more characters than this for each token of its budget.
CHARS_PER_TOKEN = 24
_WINDOW = 100_000
# Characters of a token in most texts at most, and by how much `tokens` of a span may differ from its own count.
_USUAL_CHARS = 5
_TOLERANCE = 8


def counting(count: Counter) -> Callable[[str], int]:
    """The plain counting function of either kind of counter."""
    return count.count if hasattr(count, "count") else count


class Ruler:
    """Measures spans of one document in tokens, asking the tokenizer as little as possible.

    `size` may differ by a token or two from the count of the cut text, because a tokenizer sees the neighbours; `exact` does not.
    """

    def __init__(self, text: str, count: Counter) -> None:
        self.text = text
        self.count = counting(count)
        self._offsets = getattr(count, "offsets", None)
        self._starts: array | None = None  # of all tokens, once they are needed

    def exact(self, start: int, end: int) -> int:
        return self.count(self.text[start:end])

    def whole(self, start: int, end: int, limit: int) -> int | None:
        """`exact(start, end)` if that is within the limit. A text that looks longer is measured first, as cutting it needs that anyway."""
        length = end - start
        if length > limit * CHARS_PER_TOKEN:
            return None
        if self._offsets and length > limit * _USUAL_CHARS and self.tokens(start, end) > limit + _TOLERANCE:
            return None
        tokens = self.exact(start, end)
        return tokens if tokens <= limit else None

    def tokens(self, start: int, end: int) -> int:
        if self._offsets is None:
            return self.count(self.text[start:end])
        if self._starts is None:
            self._starts = _token_starts(self.text, self._offsets)
        return bisect_left(self._starts, end) - bisect_left(self._starts, start)

    def size(self, start: int, end: int) -> int:
        """Tokens, or what the characters weigh where the tokenizer makes too little of them."""
        floor = -(-(end - start) // CHARS_PER_TOKEN)
        return max(self.tokens(start, end), floor)

    def fits(self, start: int, end: int, limit: int) -> bool:
        """`size(start, end) <= limit`, without tokenising what is too long anyway."""
        return end - start <= limit * CHARS_PER_TOKEN and self.tokens(start, end) <= limit

    def reach(self, start: int, end: int, limit: int) -> int:
        """The furthest end for which the span from `start` still fits; at least one character."""
        low, high = start + 1, min(end, start + limit * CHARS_PER_TOKEN)
        while low < high:
            middle = (low + high + 1) // 2
            if self.tokens(start, middle) <= limit:
                low = middle
            else:
                high = middle - 1
        return low


def _token_starts(text: str, offsets: Callable[[str], list[tuple[int, int]]]) -> array:
    starts = array("I")
    position = 0
    while position < len(text):
        end = _window_end(text, position)
        piece = text[position:end]
        starts.extend([position + start for start, stop in offsets(piece) if stop > start])
        position = end
    return starts


def _window_end(text: str, position: int) -> int:
    end = position + _WINDOW
    if end >= len(text):
        return len(text)
    for mark in ("\n", " "):
        found = text.rfind(mark, position + _WINDOW // 2, end)
        if found > 0:
            return found + 1
    return end
