from hypothesis import given
from hypothesis import strategies as st

from retrieval.joining import Piece, Window, join_pieces, merge_windows

TEXT = "".join(chr(97 + n % 26) for n in range(60))


@given(st.lists(st.tuples(st.integers(0, 58), st.integers(1, 20)), min_size=1, max_size=8))
def test_pieces_without_gaps_give_the_text_back(spans: list[tuple[int, int]]) -> None:
    spans = sorted((start, min(start + length, 60)) for start, length in spans)
    filled, end = [spans[0]], spans[0][1]
    for start, stop in spans[1:]:
        filled.append((min(start, end), max(stop, min(start, end) + 1)))
        end = max(end, filled[-1][1])
    joined = join_pieces([Piece(start, stop, TEXT[start:stop]) for start, stop in filled])
    assert joined.text == TEXT[joined.start : joined.end]


def test_gaps() -> None:
    assert join_pieces([Piece(0, 2, "ab"), Piece(3, 4, "c"), Piece(8, 9, "d")]).text == "ab\nc\n\nd"


def test_windows_that_share_a_chunk_become_one() -> None:
    assert merge_windows([(0, 5, 1), (1, 7, 1), (2, 0, 1), (3, 9, 0)]) == [
        Window(0, 1, (2,)), Window(4, 8, (0, 1)), Window(9, 9, (3,)),
    ]  # fmt: skip
    assert merge_windows([(0, 3, 0), (1, 4, 0)]) == [Window(3, 3, (0,)), Window(4, 4, (1,))]
