import pytest

from retrieval.likeness import diversified, nearly_equal, overlap, wordprint

LONG = (
    "The boiler stands in the cellar and is serviced each autumn by the firm that built it. Whoever hears it knock turns the red valve "
    "to the left, waits for ten minutes and then calls the caretaker, whose number hangs beside the door of the cellar on a yellow card. "
    "Nobody else opens the upper lid while the lamp burns, because the steam below it is hot and cannot be seen by those who stand there."
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (LONG, LONG, True),
        (LONG, LONG.upper().replace(".", " !\n"), True),
        (LONG, LONG.replace("caretaker", "janitor"), True),
        (LONG, LONG.replace("ten minutes", "10 minutes"), False),  # a number more
        (LONG + " 4711", LONG + " 4712", False),  # numbers tell apart what is otherwise the same
        (LONG, LONG[: len(LONG) // 2], False),
        (LONG, LONG.replace("caretaker", "janitor").replace("valve", "tap").replace("lamp", "light"), False),
        ("Closed.", "closed", True),
        ("Closed.", "Open.", False),
        ("", "", True),
        ("", "word", False),
        ("锅炉在地下室,每年秋天维修一次。", "锅炉在地下室,每年秋天维修一次", True),
        ("锅炉在地下室,每年秋天维修一次。", "锅炉在阁楼里,每年春天维修一次。", False),
    ],
)
def test_nearly_the_same_text(one, other, same):
    assert nearly_equal(wordprint(one), wordprint(other)) is same
    assert nearly_equal(wordprint(other), wordprint(one)) is same


def test_overlap_of_words():
    assert overlap(wordprint("a b c d"), wordprint("d c b a")) == pytest.approx(1)
    assert overlap(wordprint("a b"), wordprint("c d")) == 0
    assert overlap(wordprint(""), wordprint("a")) == 0
    assert 0 < overlap(wordprint("the boiler"), wordprint("the roof")) < 1


def test_the_order_of_variety():
    # 0 and 1 say the same, 2 something else and is less good, 3 is bad.
    same = {frozenset((0, 1)): 1.0}

    def alike(one: int, other: int) -> float:
        return same.get(frozenset((one, other)), 0.0)

    scores = [0.9, 0.89, 0.7, 0.1]
    assert diversified(scores, [0.0] * 4, alike, 4) == [0, 1, 2, 3]
    assert diversified(scores, [0.5] * 4, alike, 4) == [0, 2, 3, 1]
    assert diversified(scores, [0.5] * 4, alike, 1) == [0, 1, 2, 3]
    assert diversified(scores, [0.1] * 4, alike, 4) == [0, 1, 2, 3]
    assert diversified([], [], alike, 4) == []
    assert diversified([0.5, 0.5], [1.0, 1.0], alike, 2) == [0, 1]
