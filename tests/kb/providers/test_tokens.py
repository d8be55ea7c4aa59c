import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from config.errors import InvalidInput
from kb.providers import ModelSpec, token_counter, tokens
from kb.providers.tokens import PACKAGED_MODEL, counter_name, token_counter_for

needs_bpe = pytest.mark.skipif(
    importlib.util.find_spec("bpe_openai") is None,
    reason="bpe-openai is not installed (requirements/bpe.txt), so its encodings cannot count",
)

ROOT = Path(__file__).resolve().parents[3]
LOCAL = ModelSpec("m", "local", PACKAGED_MODEL, 384, 256)


def test_the_packaged_tokenizer_counts_beyond_its_own_truncation_and_without_padding():
    counter = token_counter(LOCAL)
    assert counter.count("word " * 1000) == 1000
    assert counter.count("one") == 1
    assert counter.count("") == 0
    assert counter.special == 2


def test_offsets_are_spans_of_characters():
    counter = token_counter(LOCAL)
    text = "Größe 日本 ends"
    assert [text[start:end] for start, end in counter.offsets(text)][-1] == "ends"
    assert len(counter.offsets(text)) == counter.count(text)


ODD = [
    " ",
    "\n",
    "\t",
    "\r",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x85",
    "\xa0",
    "\u2028",
    "\u3000",
    "\x00",
    "\x07",
    "\ufffd",
    "\u200b",
    "\u0301",
    "é",
    "Σ",
    "İ",
    "日本",
    "😀",
]


@given(
    st.text(st.one_of(st.sampled_from("abcABC019.,-_[]()#"), st.sampled_from(ODD).map(lambda text: text[0]), st.characters()), max_size=60)
)
@example("[CLS] a [SEP]b [ MASK ] [MASK]s")
@example("ΣΑΣ ΣΑΣ, e\u0301 \u0301e x\u0007y \x1c z")
@example("word" * 40 + " " + "日本語" * 50)
def test_words_one_by_one_are_tokens_as_of_the_whole_text(text):
    counter = token_counter(LOCAL)
    whole = counter._tokenizer.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False)
    assert counter.offsets(text) == whole.offsets
    assert counter.count(text) == len(whole.offsets)


def test_what_is_remembered_of_words_is_bounded(monkeypatch):
    monkeypatch.setattr(tokens, "_CHARS_KEPT", 50)
    counter = tokens._tokenizer_of(Path(tokens.packaged_folder()) / "tokenizer.json")
    assert [counter.count(f"w{number} w{number + 1}") for number in range(10, 40)] == [4] * 30
    assert counter.count("one " + "x" * 101) == 2
    assert sum(map(len, counter._known)) <= 50


def test_a_lone_surrogate_is_counted_not_refused():
    assert token_counter_for("estimate").count("a \ud800 b") == 2
    assert token_counter(LOCAL).offsets("a \ud800 b")[-1] == (4, 5)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 1), ("abc", 1), ("a" * 400, 100), ("日本語", 3), ("ab日本cdefg", 5), ("ไทย", 3), ("äöüß", 1)]
)
def test_the_estimate_counts_dense_scripts_by_character(text, tokens):
    assert token_counter_for("estimate").count(text) == tokens


def test_offsets_of_the_estimate_cover_the_text():
    text = "plain text, 日本語 and\nmore"
    assert "".join(text[start:end] for start, end in token_counter_for("estimate").offsets(text)) == text


def test_counter_of_a_remote_model_is_what_its_parameters_name_else_the_estimate():
    remote = ModelSpec("m", "openai", "text-embedding-3-small", 1536, 8191)
    assert counter_name(remote) == "estimate"
    assert counter_name(ModelSpec("m", "openai", "x", 8, 8, parameters={"tokenizer": PACKAGED_MODEL})) == PACKAGED_MODEL


def test_an_unknown_tokenizer_is_named():
    with pytest.raises(InvalidInput, match="no tokenizer 'nonsense'"):
        token_counter_for("nonsense")


TEXTS = ["Hello world", "Hello wörld 日本語 😀 <|endoftext|>", "", "def f(x):\n\treturn x  # 1234567", "a lone \ud800 surrogate"]


@needs_bpe
@pytest.mark.parametrize(("name", "count"), [("cl100k_base", 2), ("o200k_base", 2)])
def test_openai_encodings_count_and_place_tokens_without_a_network(name, count):
    counter = token_counter_for(name)
    assert counter.count("Hello world") == count
    for text in TEXTS:
        spans = counter.offsets(text)
        assert len(spans) == counter.count(text)
        assert "".join(text[start:end] for start, end in spans) == text


@needs_bpe
def test_the_two_encodings_differ_where_their_vocabularies_do():
    text = "नमस्ते दुनिया, यह एक परीक्षण है"
    assert token_counter_for("o200k_base").count(text) < token_counter_for("cl100k_base").count(text)


@pytest.mark.skipif(importlib.util.find_spec("bpe_openai") is not None, reason="bpe-openai is installed, so nothing is missing")
def test_openai_encodings_say_what_to_install():
    with pytest.raises(InvalidInput, match=r"requirements/bpe\.txt"):
        token_counter_for("cl100k_base")


def test_counting_in_a_child_needs_neither_django_nor_a_model_library():
    libraries = ("django", "openvino", "torch", "pydantic_ai", "openai")
    code = (
        "import sys; from kb.providers.tokens import token_counter_for; "
        "assert token_counter_for('all-MiniLM-L6-v2').count('hello world') == 2; "
        f"print([name for name in {libraries} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
