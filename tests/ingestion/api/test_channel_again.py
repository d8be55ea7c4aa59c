"""A channel that is read again comes to what its uploads came to: a file is read under its own name, whatever its title."""

from io import StringIO

import pytest
from django.core.management import call_command

from ingestion.models import IngestionRun
from kb.models import Chunk, Dataset, Document

ROWS = b"city,people\n" + b"".join(b"Town %d,%d\n" % (number, number * 1000) for number in range(1, 40))
CODE = b"def open_valve(number):\n    return number * 2\n\n\ndef close_valve(number):\n    return number / 2\n"


def state() -> list[tuple]:
    chunks = Chunk.objects.order_by("document__key", "ordinal").values_list("document__key", "text", "heading_path")
    datasets = Dataset.objects.order_by("name").values_list("name", flat=True)
    types = Document.objects.order_by("key").values_list("key", "title", "media_type")
    return [*chunks, *datasets, *types]


@pytest.fixture
def sent(sender) -> list[tuple]:
    sender.send(ROWS, title="Cities of 2025", file_name="cities.csv", media_type="application/octet-stream", visibility="organization")
    sender.send(CODE, title="How valves open", file_name="valves.py", media_type="application/octet-stream", visibility="organization")
    sender.work()
    found = state()
    assert "cities" in found
    assert any("```" in str(row) for row in found)
    return found


def test_a_run_reads_files_under_their_own_names(editor, kb_url, channel, sent, work):
    started = editor.post(f"{kb_url}/sources/{channel['source_id']}/reextract").json()
    run = work(started["run_id"])
    assert (run.status, run.counters["ingested"]) == ("succeeded", 2)
    assert state() == sent


def test_a_refused_file_is_refused_again_in_the_same_words(editor, sender, kb_url, channel, work):
    content = b"a,b\n" + b"x" * 3000 + b",".join([b"1"] * 3000)
    said = {"title": "Table of refusals", "file_name": "broken.csv", "media_type": "text/csv", "policy": {"mode": "tabular"}}
    file = sender.send(content, **said)
    sender.work()
    said = sender.file(file["id"])
    assert (said["status"], said["reason"]) == ("failed", "too_many_columns")
    work(editor.post(f"{kb_url}/sources/{channel['source_id']}/reextract").json()["run_id"])
    again = sender.file(file["id"])
    assert [again[name] for name in ("status", "error", "reason")] == [said[name] for name in ("status", "error", "reason")]


def test_the_command_reads_channels_again(sender, sent, knowledge_base):
    out = StringIO()
    call_command("reextract", "--knowledge-base", str(knowledge_base.id), stdout=out)
    assert "reads 2 documents again" in out.getvalue()
    sender.work()
    assert not IngestionRun.objects.filter(finished_at=None).exists()
    assert state() == sent
