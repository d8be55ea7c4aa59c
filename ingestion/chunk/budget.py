from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

AUTO_TOKENS = 400
SMALLEST_TARGET = 32
LARGEST_TARGET = 8000


@dataclass(frozen=True, slots=True)
class Budget:
    target_tokens: int
    overlap_tokens: int
    clamped: bool
    warning: str | None


def resolve_budget(
    *,
    target: int | Literal["auto"],
    overlap: float,
    max_input_tokens: int,
    special_tokens: int,
    prefix_tokens: int,
    reserve: int = 32,
) -> Budget:
    """Turn configured sizes into tokens that the model surely reads.

    `auto` is 400 tokens or what the model reads, whichever is less. A larger number than the model reads is clamped and says so in
    `warning`. Raises ValueError for what the configuration schema refuses too, and for a model that reads too little to be used.
    """
    window = max_input_tokens - special_tokens - prefix_tokens - reserve
    if window < 1:
        raise ValueError(
            f"The model reads {max_input_tokens} tokens, of which {special_tokens} special tokens, a prefix of {prefix_tokens} and "
            f"{reserve} for title and headings leave none for text. Shorten the prefix or choose a model that reads more."
        )
    warnings = []
    if target == "auto":
        wanted = min(AUTO_TOKENS, window)
    elif not SMALLEST_TARGET <= target <= LARGEST_TARGET:
        raise ValueError(f"target_tokens is {target}; it must be auto or {SMALLEST_TARGET} to {LARGEST_TARGET}.")
    else:
        wanted = target
    if not math.isfinite(overlap) or overlap < 0:
        raise ValueError(f"overlap is {overlap}; it must be 0 or more.")
    if overlap < 1 and overlap > 0.5:
        raise ValueError(f"overlap is {overlap}; as a fraction it may be 0.5 at most.")
    if overlap >= 1 and target != "auto" and overlap >= target:
        raise ValueError(f"overlap is {overlap:g} tokens; it must be less than target_tokens, {target}.")
    resolved = min(wanted, window)
    if resolved < wanted:
        warnings.append(
            f"target_tokens {wanted} is more than the model reads; {resolved} is used ({max_input_tokens} less {special_tokens} special "
            f"tokens, {prefix_tokens} for the prefix and {reserve} for title and headings)."
        )
    overlap_tokens = math.floor(resolved * overlap) if overlap < 1 else math.floor(overlap)
    if overlap >= 1 and overlap_tokens > resolved // 2 and (resolved < wanted or overlap_tokens >= resolved):
        warnings.append(f"overlap {overlap_tokens} does not suit a chunk of {resolved} tokens; {resolved // 2} is used.")
        overlap_tokens = resolved // 2
    return Budget(target_tokens=resolved, overlap_tokens=overlap_tokens, clamped=bool(warnings), warning=" ".join(warnings) or None)
