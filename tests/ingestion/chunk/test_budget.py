import pytest

from ingestion.chunk.budget import Budget, resolve_budget

MINILM = {"max_input_tokens": 256, "special_tokens": 2, "prefix_tokens": 0}
LARGE = {"max_input_tokens": 8192, "special_tokens": 2, "prefix_tokens": 4}


@pytest.mark.parametrize(
    ("target", "overlap", "model", "expected"),
    [
        ("auto", 0.08, MINILM, (222, 17)),
        ("auto", 0.08, LARGE, (400, 32)),
        (100, 0.5, MINILM, (100, 50)),
        (100, 99, MINILM, (100, 99)),
        (100, 0, MINILM, (100, 0)),
        (32, 1, MINILM, (32, 1)),
        (8000, 0.1, LARGE, (8000, 800)),
    ],
)
def test_sizes_that_fit_are_taken_as_they_are(target, overlap, model, expected):
    assert resolve_budget(target=target, overlap=overlap, **model) == Budget(*expected, clamped=False, warning=None)


def test_more_than_the_model_reads_is_clamped_and_says_so():
    budget = resolve_budget(target=1000, overlap=0.1, **MINILM)
    assert (budget.target_tokens, budget.overlap_tokens, budget.clamped) == (222, 22, True)
    assert "1000" in budget.warning
    assert "222" in budget.warning


@pytest.mark.parametrize("target", ["auto", 1000])
def test_an_overlap_too_large_for_what_is_left_is_clamped_too(target):
    budget = resolve_budget(target=target, overlap=300, **MINILM)
    assert (budget.target_tokens, budget.overlap_tokens, budget.clamped) == (222, 111, True)
    assert "overlap 300" in budget.warning


@pytest.mark.parametrize(
    ("target", "overlap", "says"),
    [
        (31, 0, "32 to 8000"),
        (8001, 0, "32 to 8000"),
        (100, 0.6, "0.5 at most"),
        (100, 100, "less than"),
        (100, -0.1, "0 or more"),
        (100, float("nan"), "0 or"),
    ],
)
def test_what_the_schema_refuses_is_refused_here(target, overlap, says):
    with pytest.raises(ValueError, match=says):
        resolve_budget(target=target, overlap=overlap, **MINILM)


def test_a_prefix_that_leaves_no_room_is_an_error():
    with pytest.raises(ValueError, match="Shorten the prefix"):
        resolve_budget(target="auto", overlap=0, max_input_tokens=64, special_tokens=2, prefix_tokens=30)
