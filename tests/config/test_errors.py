import pickle

import pytest

from config import errors
from config.errors import ExtractionError, InvalidInput, LecternError, NotFound, ProviderError, StaleVersion, TransientProviderError


def every_class(root=LecternError):
    return [root, *(found for child in root.__subclasses__() for found in every_class(child) if found.__module__ == errors.__name__)]


def test_codes_are_words_and_statuses_are_of_http():
    for kind in every_class():
        assert kind.code.replace("_", "").isalpha()
        assert 400 <= kind.status < 600


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("no", errors=[{"path": "a", "message": "b"}]),
        StaleVersion(expected=1, current=3),
        ProviderError("no", transient=True),
        TransientProviderError("no", retry_after=2.5),
        ExtractionError("no", reason="encrypted", retires=True),
    ],
)
def test_an_error_survives_a_process_boundary(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.extra, copy.transient) == (type(error), str(error), error.extra, error.transient)
    assert copy.__dict__ == error.__dict__


def test_transience_is_a_matter_of_the_error():
    assert ProviderError("x", transient=True).transient
    assert not ProviderError("x").transient
    assert not ProviderError.transient


def test_absent_things_say_one_sentence():
    assert str(NotFound()) == str(NotFound())
    assert "1" in str(StaleVersion(expected=1, current=3))
