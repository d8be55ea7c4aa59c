import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestion.chunk import CHUNK_STRATEGIES, ChunkSettings, Passage, chunk

TOKEN = re.compile(r"\w{1,8}|[^\w\s]")
FRAGMENTS = [
    "# A", "## B b", "### C ###", "Setext\n===", "Two\nlines\n---", "para one. It has sentences! Does it? Yes.", "word " * 60,
    "long" * 400, "~~~\nunclosed",
    "- item\n  - nested\n    - deep\n- other", "1. a\n2. b\n\n   para in item\n\n   ```\n   code\n   ```", "```py\ncode()\n\nmore()\n```",
    "> quote\n> more\n>\n> again", "|a|b|\n|-|-|\n" + "".join(f"|r{i}|v {i}|\n" for i in range(40)),
    "中文字符测试。这是第二句！" * 30,
    "ภาษาไทยไม่มีช่องว่าง" * 20, "👩‍👩‍👧‍👦é́́" * 30, "<div>\n<p>x</p>\n</div>", "<!-- c", "   ", "\u3000", "\t", "***",
    "    indented code\n    more",
    "مرحبا بالعالم؟ نعم۔ " * 20, "[link](http://x)", "|", "a|b\n-|-", "-", "#", "####### no", "\x00\x1c", "\ud800",
]  # fmt: skip


def count(text: str) -> int:
    return len(TOKEN.findall(text))


class Offsets:
    def count(self, text: str) -> int:
        return count(text)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in TOKEN.finditer(text)]


def in_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def verify(markdown: str, passages: list[Passage], *, settings: ChunkSettings, count=count) -> None:
    """Everything that holds for any text and any settings."""
    covered = bytearray(len(markdown))
    before = None
    for passage in passages:
        text = markdown[passage.start : passage.end]
        assert text
        assert text == text.strip()
        assert passage.tokens == count(text)
        assert passage.tokens <= settings.target_tokens or len(text) == 1
        if before:
            assert before.start < passage.start
            assert before.end < passage.end
        if passage.table_header:
            assert passage.table_header[1] <= passage.start
        covered[passage.start : passage.end] = b"\1" * (passage.end - passage.start)
        before = passage
    assert not [index for index, character in enumerate(markdown) if not covered[index] and not character.isspace()]


@st.composite
def accepted_settings(draw) -> ChunkSettings:
    target = draw(st.one_of(st.integers(32, 300), st.sampled_from([400, 8000])))
    overlap = draw(st.one_of(st.integers(0, target - 1), st.sampled_from([0, int(target * 0.08), target // 2, target - 1])))
    return ChunkSettings(draw(st.sampled_from(sorted(CHUNK_STRATEGIES))), target, overlap, draw(st.sampled_from([0, 1, 16, 120, 5000])))


documents = st.lists(
    st.tuples(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=40)), st.sampled_from(["\n", "\n\n", " ", "", "\n\n\n"])), max_size=40
).map(lambda parts: "".join(text + gap for text, gap in parts).replace("\r", "\n"))


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(documents, accepted_settings(), st.sampled_from([count, Offsets(), in_bytes]))
def test_every_text_is_covered_in_order_within_the_budget(markdown, chosen, counter):
    passages = chunk(markdown, settings=chosen, count=counter)
    verify(markdown, passages, settings=chosen, count=counter.count if isinstance(counter, Offsets) else counter)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=600).map(lambda text: text.replace("\r", "\n")), accepted_settings(), st.sampled_from([count, Offsets(), in_bytes]))
def test_any_characters_at_all(markdown, chosen, counter):
    passages = chunk(markdown, settings=chosen, count=counter)
    verify(markdown, passages, settings=chosen, count=counter.count if isinstance(counter, Offsets) else counter)


@pytest.mark.parametrize("strategy", sorted(CHUNK_STRATEGIES))
def test_a_tokenizer_that_counts_more_in_the_cut_text_is_still_obeyed(strategy):
    # Offsets promise little, the count finds three times as much: only the check at the end can notice.
    class Liar(Offsets):
        def count(self, text):
            return 3 * count(text)

    markdown = "\n\n".join(f"## Part {part}\n\n" + "Some words that say little. " * 30 for part in range(5))
    chosen = ChunkSettings(strategy, 50, 10, 120)
    verify(markdown, chunk(markdown, settings=chosen, count=Liar()), settings=chosen, count=Liar().count)


@pytest.mark.parametrize("strategy", sorted(CHUNK_STRATEGIES))
def test_a_short_document_is_one_chunk_and_an_empty_one_none(strategy):
    chosen = ChunkSettings(strategy, 100, 8, 120)
    text = "\n# Title\n\nintro\n\n## Part\n\nbody\n"
    assert chunk(text, settings=chosen, count=count) == [Passage(1, len(text) - 1, ("Title",), 7)]
    assert chunk(" \n\t\n", settings=chosen, count=count) == []
    assert [passage.end for passage in chunk("x", settings=chosen, count=count)] == [1]


def test_an_unknown_strategy_names_the_known_ones():
    with pytest.raises(ValueError, match="structure, recursive, transcript"):
        chunk("text", settings=ChunkSettings("magic", 100, 0, 0), count=count)


@pytest.mark.parametrize(
    "values", [{"target_tokens": 0}, {"target_tokens": 40, "overlap_tokens": 40}, {"overlap_tokens": -1}, {"min_chars": -1}]
)
def test_settings_that_could_never_work_are_refused(values):
    with pytest.raises(ValueError, match="must be"):
        ChunkSettings(**values)


def test_a_word_of_unknown_tokens_is_still_cut():
    blob = "x" * 50_000
    passages = chunk(blob, settings=ChunkSettings("structure", 100, 8, 120), count=lambda text: len(text.split()))
    assert len(passages) > 15
    assert "".join(blob[passage.start : passage.end] for passage in passages) == blob


def test_letters_keep_their_marks():
    text = "ก็" * 400
    for passage in chunk(text, settings=ChunkSettings("structure", 40, 0, 0), count=len):
        assert text[passage.start : passage.end].startswith("ก")
