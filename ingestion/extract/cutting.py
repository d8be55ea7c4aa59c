"""Markdown to passages, in the child, because the tokenizer is there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ingestion.extract.base import Extracted

# About what the smallest target holds, where nobody says what counts.
FITTING_CHARS = 800
Span = tuple[int, int]


def cut(markdown: str, wanted: Mapping[str, Any], *, title: str, whole: Sequence[Span] = ()) -> list[dict[str, Any]]:
    """Passages as plain values, each with the line of title and headings that is embedded above its text.

    The spans `whole`, which begin the text, are a passage each: descriptions of datasets, which were made to fit."""
    # Kept out of the start: a probe never needs them.
    from ingestion.chunk import ChunkSettings, Passage, chunk
    from ingestion.chunk.context import context_line
    from kb.providers.tokens import token_counter_for

    counter = token_counter_for(wanted["tokenizer"])
    passages = [Passage(start, end, (), counter.count(markdown[start:end])) for start, end in whole]
    offset = max((end for _, end in whole), default=0)
    passages += [
        _moved(passage, offset) for passage in chunk(markdown[offset:], settings=ChunkSettings(**wanted["settings"]), count=counter)
    ]
    return [
        {
            **{name: getattr(passage, name) for name in Passage.__slots__},
            "context": context_line(
                title, passage.heading_path, markdown[passage.start : passage.end], count=counter.count, reserve=wanted["reserve"]
            ),
        }
        for passage in passages
    ]


def whole_spans(extracted: Extracted) -> list[Span]:
    """Where datasets are described in the text, as far as that was kept."""
    spans: Iterable[Span] = dict.fromkeys((*file.details["span"],) for file in extracted.files if file.kind == "dataset")
    length = len(extracted.markdown)
    return [(start, min(end, length)) for start, end in spans if start < length]


def fitting(wanted: Mapping[str, Any] | None) -> Callable[[str], bool]:
    """Whether a text is one passage for the model."""
    if not wanted:
        return lambda text: len(text) <= FITTING_CHARS
    from kb.providers.tokens import token_counter_for

    counter = token_counter_for(wanted["tokenizer"])
    most = wanted["settings"]["target_tokens"]
    return lambda text: counter.count(text) <= most


def _moved(passage: Any, offset: int) -> Any:
    if not offset:
        return passage
    header = passage.table_header and (passage.table_header[0] + offset, passage.table_header[1] + offset)
    return type(passage)(passage.start + offset, passage.end + offset, passage.heading_path, passage.tokens, header)
