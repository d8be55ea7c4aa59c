"""Files that come out of a file: written by a real child, taken by its parent, and nothing else."""

import json
from pathlib import Path

import pytest

from config.errors import ExtractionError
from ingestion.extract import Extracted, ExtractedFile, Limits, extract


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def outcomes(reply: dict) -> list:
    return json.loads(reply["extracted"]["markdown"])


def test_files_arrive_where_they_were_asked_for(hostile, request_for, folder):
    reply = hostile.run(request_for(["write", "a.bin", 10], ["write", "b.bin", 20], outbox=folder, max_output_bytes=100))
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == {"a.bin": 10, "b.bin": 20}
    files = Extracted.from_json(reply["extracted"]).files
    assert files == [ExtractedFile(name, name, "text/plain", "attachment", {"n": 1}) for name in ("a.bin", "b.bin")]


def test_each_of_a_batch_has_its_own_folder(hostile, request_for, tmp_path):
    folders = [tmp_path / f"out-{number}" for number in range(3)]
    for made in folders:
        made.mkdir()
    requests = [request_for(["write", f"{made.name}.bin", 5], outbox=made, max_output_bytes=5) for made in folders]
    assert all(isinstance(result, dict) for result in hostile.run_many([*requests, request_for(["write", "none.bin", 1])]))
    assert [[path.name for path in made.iterdir()] for made in folders] == [["out-0.bin"], ["out-1.bin"], ["out-2.bin"]]


@pytest.mark.parametrize("deed", ["write", "write_honestly"])
def test_more_than_the_limit_is_refused_and_nothing_arrives(hostile, request_for, folder, deed):
    with pytest.raises(ExtractionError, match=r"more than 1,000 bytes .* Split it") as caught:
        hostile.run(
            request_for([deed, "big.bin", 600], [deed, "more.bin", 600], [deed, "huge.bin", 2000], outbox=folder, max_output_bytes=1000)
        )
    assert (caught.value.reason, caught.value.retires) == ("output_limit", True)
    assert not list(folder.iterdir())


def test_more_files_than_the_limit_are_refused_while_they_are_written(hostile, request_for, folder, monkeypatch):
    """Empty ones, which no limit of bytes counts; the child never answers."""
    monkeypatch.setattr("ingestion.extract.outbox.MOST_FILES", 50)
    with pytest.raises(ExtractionError) as caught:
        hostile.run(request_for(["write", "n", 0, 60], ["hang"], outbox=folder, max_output_bytes=1000, max_seconds=20))
    assert (caught.value.reason, caught.value.retires) == ("output_limit", True)
    assert not list(folder.iterdir())


def test_a_file_that_was_not_written_is_a_defect(hostile, request_for, folder):
    with pytest.raises(ExtractionError, match="never-written") as caught:
        hostile.run(request_for(["write", "a.bin", 1], name="liar.txt", outbox=folder, max_output_bytes=100))
    assert (caught.value.reason, caught.value.retires) == ("internal", False)


def test_without_an_outbox_nothing_is_written(hostile, request_for, tmp_path):
    assert outcomes(hostile.run(request_for(["write", "a.bin", 5])))[0] in ("Permission denied", "File too large")


def test_nothing_is_written_beside_the_outbox(hostile, request_for, folder, tmp_path):
    if not hostile.sandbox_state().startswith("landlock"):
        pytest.skip("no Landlock on this system")
    deeds = [["write", "../../beside", 5], ["write", str(tmp_path / "x"), 5], ["symlink", "/etc/passwd"], ["mkdir"], ["link", "theirs"]]
    reply = hostile.run(request_for(*deeds, outbox=folder, max_output_bytes=100))
    assert outcomes(reply) == ["Permission denied"] * 4 + ["Invalid cross-device link"]
    assert not list(folder.iterdir())


def test_an_extractor_that_writes_nothing_knows_no_outbox(tmp_path, folder):
    (tmp_path / "a.txt").write_text("A note.")
    read = extract(tmp_path / "a.txt", name="a.txt", declared_type=None, limits=Limits(), outbox=folder)
    assert (read.markdown, read.files) == ("A note.", [])
