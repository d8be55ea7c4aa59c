"""Real children: what they may do, how they are stopped, and that they come back."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from config.errors import ExtractionError
from ingestion.extract import Extracted
from ingestion.extract.sandbox import Sandbox
from tests.samples.pdfs import text_pdf

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "note.txt"
    path.write_text("A note about lecterns.")
    return path


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Seconds of honest work: a table of many cells."""
    path = tmp_path / "slow.html"
    path.write_text("<html><body><table>" + "<tr><td>cell</td><td><b>bold</b></td></tr>" * 115_000 + "</table></body></html>")
    return path


def request(path: Path, **limits: object) -> dict:
    return {"op": "extract", "path": str(path), "name": path.name, "limits": limits}


def test_extracts_and_stays_warm(sandbox, note):
    first = Extracted.from_json(sandbox.run(request(note))["extracted"])
    assert first.markdown == "A note about lecterns."
    before = sandbox.pids()
    sandbox.run(request(note))
    assert sandbox.pids() == before


def test_a_child_serves_one_owner(note):
    with Sandbox(size=2, languages=False) as pool:
        pool.warm()
        pool.run(request(note), owner="a")
        unused, of_a = pool.pids()
        pool.run(request(note), owner="a")
        assert pool.pids() == [unused, of_a]
        pool.run(request(note), owner="b")
        assert set(pool.pids()) == {unused, of_a}  # one that has read nothing is anybody's
        pool.run(request(note), owner="c")
        left, of_c = pool.pids()
        assert left in {unused, of_a}
        assert of_c not in {unused, of_a}
        pool.run(request(note), owner="c")
        assert pool.pids() == [left, of_c]


def test_errors_of_the_content_cross_the_pipe(sandbox, tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(text_pdf(["secret"], password="x"))
    with pytest.raises(ExtractionError, match=r"a\.pdf needs a password") as caught:
        sandbox.run(request(path))
    assert (caught.value.reason, caught.value.retires) == ("encrypted", True)


def test_wall_clock(sandbox, slow, note):
    started = time.monotonic()
    with pytest.raises(ExtractionError, match=r"took longer than 0\.02 seconds") as caught:
        sandbox.run(request(slow, max_seconds=0.02))
    assert time.monotonic() - started < 4
    assert (caught.value.reason, caught.value.retires) == ("time_limit", False)
    assert sandbox.run(request(note))["extracted"]["markdown"]


def test_memory(sandbox, slow, note):
    with pytest.raises(ExtractionError, match="more than 130 MB") as caught:
        sandbox.run(request(slow, max_memory_mb=130))
    assert (caught.value.reason, caught.value.retires) == ("memory_limit", False)
    assert sandbox.run(request(note))["extracted"]["markdown"]


def test_a_killed_child_is_a_crash_and_the_next_job_runs(sandbox, slow, note):
    sandbox.run(request(note))
    (pid,) = sandbox.pids()
    killer = threading.Timer(0.2, os.kill, (pid, signal.SIGSEGV))
    killer.start()
    with pytest.raises(ExtractionError, match="crash") as caught:
        sandbox.run(request(slow))
    assert (caught.value.reason, caught.value.retires) == ("crashed", False)
    assert sandbox.run(request(note))["extracted"]["markdown"]


@pytest.mark.parametrize(
    ("limits", "reason"), [({"max_seconds": 0.02}, "time_limit"), ({"max_memory_mb": 130}, "memory_limit")], ids=["time", "memory"]
)
def test_of_many_the_hostile_one_fails_alone(sandbox, slow, note, tmp_path, limits, reason):
    other = tmp_path / "other.txt"
    other.write_text("Another note.")
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.4 nothing")
    results = sandbox.run_many([request(note), request(broken), request(slow, **limits), request(other), request(note)])
    texts = [result if isinstance(result, ExtractionError) else result["extracted"]["markdown"] for result in results]
    assert (texts[0], texts[3], texts[4]) == ("A note about lecterns.", "Another note.", "A note about lecterns.")
    assert (texts[1].reason, texts[2].reason) == ("damaged", reason)
    assert texts[2].message.startswith("slow.html")


def test_of_many_one_that_crashes_its_child_fails_alone(sandbox, slow, note):
    sandbox.run(request(note))
    (pid,) = sandbox.pids()
    killer = threading.Timer(0.3, os.kill, (pid, signal.SIGSEGV))
    killer.start()
    first, crashed, last = sandbox.run_many([request(note), request(slow), request(note)])
    assert first["extracted"] == last["extracted"]
    assert (crashed.reason, crashed.message.split()[0]) == ("crashed", "slow.html")


def test_of_many_none_is_begun_after_the_time(sandbox, slow, note):
    assert len(sandbox.run_many([request(slow), request(note), request(note)], seconds=0.01)) == 1
    assert len(sandbox.run_many([request(note), request(note)], seconds=60)) == 2
    assert sandbox.run_many([]) == []


def test_without_languages_a_child_is_small_and_says_none(sandbox, tmp_path):
    path = tmp_path / "russian.txt"
    path.write_text("Кафедра стоит у окна, и открытая книга лежит на ней. Читатель подходит к ней каждое утро.")
    with Sandbox(languages=False) as small:
        reply = small.run(request(path))["extracted"]
        assert reply["language"] is None
        assert "Кафедра" in reply["markdown"]
        assert sandbox.run(request(path))["extracted"]["language"] == "ru"
        assert _rss_mb(small) < _rss_mb(sandbox) - 50


def _rss_mb(pool: Sandbox) -> float:
    (pid,) = pool.pids()
    return psutil.Process(pid).memory_info().rss / 1e6


def test_a_child_that_died_while_waiting_is_replaced(sandbox, note):
    sandbox.run(request(note))
    (pid,) = sandbox.pids()
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=5)
    assert sandbox.run(request(note))["extracted"]["markdown"]


def test_children_are_recycled(note, monkeypatch):
    monkeypatch.setattr("ingestion.extract.sandbox.FILES_PER_CHILD", 2)
    with Sandbox() as sandbox:
        sandbox.run(request(note))
        (pid,) = sandbox.pids()
        sandbox.run(request(note))
        assert sandbox.pids() == []
        assert not psutil.pid_exists(pid)


def test_threads_share_the_pool(note):
    with Sandbox(size=2) as sandbox:
        results: list[str] = []
        threads = [threading.Thread(target=lambda: results.append(sandbox.run(request(note))["extracted"]["markdown"])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert results == ["A note about lecterns."] * 8
        assert 1 <= len(sandbox.pids()) <= 2
        children = sandbox.pids()
    assert not any(psutil.pid_exists(pid) for pid in children)
    with pytest.raises(ExtractionError, match="shutting down"):
        sandbox.run(request(note))


def test_no_credentials_and_no_django_in_a_child(note, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://user:password@host/db")
    monkeypatch.setenv("LECTERN_SECRET_KEY", "very secret")
    with Sandbox() as sandbox:
        sandbox.run(request(note))
        child = psutil.Process(sandbox.pids()[0])
        environment = child.environ()
        assert not {"DATABASE_URL", "LECTERN_SECRET_KEY", "HOME"} & environment.keys()
        assert child.pid == os.getpgid(child.pid)
    code = "import ingestion.extract.child, sys; print([m for m in ('django', 'celery', 'psycopg', 'redis') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_children_die_with_their_parent(note):
    code = (
        "import os, sys; from ingestion.extract.sandbox import Sandbox\n"
        f"s = Sandbox(); s.run({request(note)!r}); print(s.pids()[0], flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, timeout=60)
    pid = int(done.stdout)
    deadline = time.monotonic() + 5
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("tokenizer", ["estimate", "all-MiniLM-L6-v2"])
def test_passages_come_with_the_text_and_without(sandbox, tmp_path, tokenizer):
    path = tmp_path / "long.md"
    path.write_text("# Title\n\n" + "\n\n".join(f"Paragraph {n} about lecterns and reading desks." for n in range(100)))
    settings = {"strategy": "structure", "target_tokens": 64, "overlap_tokens": 0, "min_chars": 20}
    wanted = {"settings": settings, "tokenizer": tokenizer, "reserve": 32}
    reply = sandbox.run(request(path) | {"chunk": wanted})
    assert len(reply["passages"]) > 5
    assert reply["passages"] == sandbox.run({"op": "chunk", "path": str(path), "title": "Title", "chunk": wanted})["passages"]
    last = reply["passages"][-1]
    assert reply["extracted"]["markdown"][last["start"] : last["end"]].endswith("reading desks.")


def test_a_start_that_fails_while_warming_leaves_room_for_the_next(note, monkeypatch):
    """`TMPDIR` is where a child gets its inbox; without it none can start."""
    import tempfile

    with Sandbox(size=1) as pool:
        monkeypatch.setattr(tempfile, "tempdir", str(note.parent / "missing"))
        with pytest.raises(FileNotFoundError):
            pool.warm()
        monkeypatch.undo()
        assert Extracted.from_json(pool.run(request(note))["extracted"]).markdown


def test_folders_of_killed_processes_go_with_the_next_start(note, tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"lectern-extract-{ended.pid}-abc_12"
    kept = [tmp_path / name for name in (f"lectern-extract-{os.getppid()}-abc", f"lectern-extract-{ended.pid}", f"x-{ended.pid}-abc")]
    for folder in (left, *kept):
        folder.mkdir()
        (folder / "1").write_text("a stranger's file")
    (link := tmp_path / f"lectern-extract-{ended.pid}-link").symlink_to(kept[0])
    with Sandbox() as sandbox:
        assert not left.exists()
        sandbox.run(request(note))
        assert len(list(tmp_path.glob(f"lectern-extract-{os.getpid()}-*"))) == 1
    assert not list(tmp_path.glob(f"lectern-extract-{os.getpid()}-*")), "a normal stop leaves none"
    assert link.is_symlink()
    assert all((folder / "1").exists() for folder in kept)
