"""A child that was taken over answers what nobody asked: no other file gets that for its text."""

import time

import pytest

from config.errors import ExtractionError
from ingestion.extract import Extracted
from ingestion.extract.replies import check_reply

FORGED = {"extracted": Extracted(markdown="Forged.", title="forged", media_type="text/plain").to_json(), "passages": []}
MINE, GUESSED = FORGED | {"number": "mine"}, FORGED | {"number": "2"}


@pytest.mark.parametrize(
    "messages",
    [
        [FORGED], [GUESSED], [{}], [MINE, FORGED], [MINE, MINE], [{"number": "mine"}], [{"number": "mine", "over": True}],
        [{"number": "mine", "extracted": {"markdown": "x"}, "passages": []}], [MINE | {"passages": [{"start": 0}]}],
        [{"number": "mine", "error": {"message": "", "reason": "mystery", "retires": False}}], [{"number": "mine", "error": "x"}],
    ],
    ids=["no number", "another's", "none", "one ahead", "its own twice", "empty", "over", "half", "half a passage", "silent", "text"],
)  # fmt: skip
def test_a_wrong_answer_or_one_too_many_is_the_crash_of_its_file_and_of_its_child(hostile, request_for, messages):
    hostile.run(request_for(["thread"]))
    before = hostile.pids()
    with pytest.raises(ExtractionError) as caught:
        hostile.run(request_for(["answer", *messages]))
    assert (caught.value.reason, caught.value.retires) == ("crashed", False)
    assert hostile.pids() == []
    assert hostile.run(request_for(["thread"]))["extracted"]["markdown"] == "[null]"
    assert hostile.pids() != before


def test_of_a_batch_the_next_gets_its_own(hostile, request_for):
    first, failed, last = hostile.run_many([request_for(["thread"]), request_for(["answer", FORGED]), request_for(["thread"], ["thread"])])
    assert first["extracted"]["markdown"] == "[null]"
    assert failed.reason == "crashed"
    assert last["extracted"]["markdown"] == "[null, null]"


def test_one_that_speaks_while_nobody_asks_is_replaced_and_the_next_file_is_read(hostile, request_for):
    assert hostile.run(request_for(["answer_late", 0.1, GUESSED]))["extracted"]["markdown"] == "[null]"
    before = hostile.pids()
    time.sleep(0.3)
    assert hostile.run(request_for(["thread"]))["extracted"]["markdown"] == "[null]"
    assert hostile.pids() != before


@pytest.mark.parametrize(
    ("operation", "reply"),
    [("chunk", {"passages": [], "language": 1}), ("query", {"columns": [], "rows": {}}), ("recognize", {"recognized": None})],
)
def test_every_operation_has_its_shape(operation, reply):
    with pytest.raises(ValueError, match=r"kind|recognized"):
        check_reply(reply | {"number": "1"}, sent={"op": operation, "number": "1"})
