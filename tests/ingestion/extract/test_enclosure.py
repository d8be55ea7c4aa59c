"""A child whose extractor was taken over tries to get out: by the kernel's own calls, and what it tries must fail."""

import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from config.errors import ExtractionError, Unavailable
from ingestion.extract import enclosure, seccomp, syscalls
from ingestion.extract.sandbox import Sandbox

PROJECT = Path(__file__).resolve().parents[3]
MEBIBYTE = 1 << 20
REFUSED, DENIED, NO_SUCH_CALL = "Operation not permitted", "Permission denied", "Function not implemented"
TESSERACT = Path("/usr/bin/tesseract")
needs_kernel = pytest.mark.skipif(not enclosure.is_closed(enclosure.offered()), reason=f"the kernel offers less: {enclosure.offered()}")
INDEX = seccomp.ARCHITECTURES.get(platform.machine(), (0,))[0]

pytestmark = needs_kernel


@pytest.fixture
def tried(hostile, request_for):
    """What came of each deed: null if it was done."""

    def _tried(*deeds: list, **more: object) -> list:
        return json.loads(hostile.run(request_for(*deeds, **more))["extracted"]["markdown"])

    return _tried


def test_no_network_not_even_by_the_c_library(tried):
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert tried(["connect", server.getsockname()[1]]) == [REFUSED]
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()


def test_no_file_but_its_own(tried):
    home = str(Path.home() / ".bashrc")
    assert (
        tried(["read", "/etc/passwd"], ["read", "/proc/self/environ"], ["read", home], ["read", str(PROJECT / "manage.py")]) == [DENIED] * 4
    )


def test_no_other_process(tried):
    assert tried(["fork"], ["kill_parent"], ["run", "/bin/true"]) == [REFUSED] * 3


def test_a_gigabyte_is_not_written(hostile, request_for, tmp_path):
    """Neither past the limit of a file, which it may not lift, nor in many files."""
    out = tmp_path / "out"
    out.mkdir()
    gigabyte = 1024 * MEBIBYTE
    with pytest.raises(ExtractionError) as caught:
        hostile.run(
            request_for(
                ["raise_limits"], ["write", "big", gigabyte], ["write", "n", 4 * MEBIBYTE, 256], outbox=out, max_output_bytes=5_000_000
            )
        )
    assert (caught.value.reason, caught.value.retires) == ("output_limit", True)
    assert not list(out.iterdir())
    assert json.loads(hostile.run(request_for(["raise_limits"], ["write", "a", MEBIBYTE]))["extracted"]["markdown"]) == [REFUSED, DENIED]


def test_threads_are_free(tried):
    assert tried(["thread"]) == [None]


@pytest.mark.parametrize(
    "name", sorted(syscalls.NETWORK | syscalls.FORKS | syscalls.PROGRAMS | syscalls.OTHER_PROCESSES | syscalls.SYSTEM | syscalls.FILES)
)
def test_every_call_of_the_list_is_refused(tried, name):
    groups = syscalls.NETWORK | syscalls.FORKS | syscalls.PROGRAMS | syscalls.OTHER_PROCESSES | syscalls.SYSTEM | syscalls.FILES
    if groups[name][INDEX] is None:
        pytest.skip(f"{platform.machine()} has no {name}")
    assert tried(["call", groups[name][INDEX], 0, 0, 0, 0, 0]) == [REFUSED]


def test_what_is_judged_by_its_arguments(tried):
    clone, kill, tgkill, prlimit, ioctl, prctl = (
        numbers[INDEX] for numbers in (syscalls.CLONE, syscalls.KILL, syscalls.TGKILL, syscalls.PRLIMIT, syscalls.IOCTL, syscalls.PRCTL)
    )
    assert tried(
        ["call", clone, 17, 0],  # SIGCHLD only: a fork
        ["call", syscalls.CLONE3[INDEX], 0, 0],
        ["call", kill, -1, 0],
        ["call", kill, os.getpid(), 0],
        ["call", tgkill, os.getpid(), os.getpid(), 0],
        ["call", prlimit, 0, 1, 1, 0],
        ["call", prlimit, 0, 1, 0, 0],
        ["call", ioctl, 0, 0x40086602],  # FS_IOC_SETFLAGS
        ["call", prctl, 1, 0],
        ["call", 460, 0],
    ) == [REFUSED, NO_SUCH_CALL, REFUSED, REFUSED, REFUSED, REFUSED, None, REFUSED, REFUSED, NO_SUCH_CALL]


def test_its_parent_is_scheduled_as_before(tried):
    before, priority = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    deeds = [["schedule", name, pid] for name in ("affinity", "scheduler", "priority") for pid in (os.getpid(), 0)]
    assert tried(*deeds) == [REFUSED] * len(deeds)
    assert (os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)) == (before, priority)


def test_no_signal_by_way_of_a_file_where_landlock_keeps_none_inside(monkeypatch, request_for):
    monkeypatch.setattr("ingestion.extract.process.CHILD_MODULE", "tests.ingestion.extract.unscoped_child")
    received: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: received.append(number))
    try:
        with Sandbox(languages=False) as unscoped:
            deeds = [["signal_by_file", os.getpid(), signal.SIGUSR1], ["own", os.getpid()], ["kill_parent"]]
            assert json.loads(unscoped.run(request_for(*deeds))["extracted"]["markdown"]) == [REFUSED] * 3
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert received == []


def test_of_the_commands_on_files_only_those_of_descriptors_flags_and_locks(tried):
    fcntl, fallocate = syscalls.FCNTL[INDEX], syscalls.FALLOCATE[INDEX]
    refused = [8, 9, 10, 15, 16, 1024, 1026, 1031, 1036]
    assert tried(*(["call", fcntl, 0, command, 0] for command in (*refused, 1, 3))) == [REFUSED] * len(refused) + [None, None]
    assert tried(["call", fallocate, 0, 1, 0, 4096]) == [REFUSED]  # room on the disk that the file's size does not tell


def test_the_stored_bytes_are_out_of_reach_under_their_second_name(hostile, request_for, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    request = request_for(["chmod"], outbox=out)
    before = Path(request["path"]).stat().st_mode
    assert json.loads(hostile.run(request)["extracted"]["markdown"]) == [REFUSED]
    assert Path(request["path"]).stat().st_mode == before


@pytest.mark.parametrize(
    ("deed", "limits", "reason"),
    [
        (["allocate", 600 * MEBIBYTE], {"max_memory_mb": 200}, "memory_limit"),
        (["hang"], {"max_seconds": 0.3}, "time_limit"),
        (["abort"], {}, "crashed"),
        (["babble", "ffffffff"], {}, "crashed"),
        (["babble", "0000000578787878"], {"max_seconds": 0.5}, "time_limit"),
        (["babble", "0000000378787878"], {}, "crashed"),
    ],
    ids=["memory", "time", "abort", "a frame of 4 GB", "half a frame", "no JSON"],
)
def test_what_it_does_to_itself_is_the_failure_of_its_file(hostile, request_for, deed, limits, reason):
    bad, good = request_for(deed, **limits), request_for(["thread"])
    failed, other = hostile.run_many([bad, good])
    assert (failed.reason, failed.retires) == (reason, False)
    assert other["extracted"]["markdown"] == "[null]"


@pytest.fixture(scope="module")
def with_tesseract() -> Iterator[Sandbox]:
    if not TESSERACT.exists():
        pytest.skip("tesseract is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ingestion.extract.process.CHILD_MODULE", "tests.ingestion.extract.hostile")
        with Sandbox(languages=False, programs=[TESSERACT], readable=[Path("/usr/share/tesseract-ocr")]) as sandbox:
            yield sandbox


def test_one_that_may_run_a_program_runs_that_and_no_other(with_tesseract, request_for):
    deeds = [["run", str(TESSERACT), "--version"], ["run", "/bin/true"], ["connect", 1], ["read", "/etc/passwd"], ["kill_parent"]]
    version, *others = json.loads(with_tesseract.run(request_for(*deeds))["extracted"]["markdown"])
    assert version.startswith("tesseract ")
    assert others == [DENIED, REFUSED, DENIED, REFUSED]


def test_what_it_started_ends_with_it(with_tesseract, request_for):
    """tesseract waits for its standard input, which never ends."""
    with pytest.raises(ExtractionError) as caught:
        with_tesseract.run(request_for(["leave", str(TESSERACT), "stdin", "stdout"], ["hang"], max_seconds=0.5))
    assert caught.value.reason == "time_limit"
    assert not [p for p in psutil.process_iter(["name"]) if p.info["name"] == "tesseract" and p.status() != psutil.STATUS_ZOMBIE]


def test_where_the_kernel_offers_less_only_limits_start_it(monkeypatch, request_for):
    monkeypatch.setattr("ingestion.extract.process.CHILD_MODULE", "tests.ingestion.extract.open_child")
    with Sandbox(languages=False) as sandbox:
        with pytest.raises(Unavailable, match=r"no Landlock.*LECTERN_SANDBOX=limits"):
            sandbox.run(request_for(["thread"]))
        assert sandbox.pids() == []
    with Sandbox(languages=False, limits_only=True) as sandbox:
        assert "thread" in sandbox.run(request_for(["thread"]))["extracted"]["markdown"]
        assert sandbox.sandbox_state() == "open: this kernel has no Landlock (Function not implemented)"


@pytest.mark.parametrize("variables", [{}, {"LECTERN_SANDBOX": "limits"}], ids=["kernel", "limits"])
def test_check_says_what_holds(variables):
    environment = {**os.environ, "LECTERN_SECRET_KEY": "k" * 40, **variables}
    done = subprocess.run([sys.executable, "manage.py", "check"], cwd=PROJECT, env=environment, capture_output=True, text=True, check=True)
    assert re.search(r"closed in by the kernel \(landlock ABI \d+, seccomp\)", done.stdout)


@pytest.mark.parametrize("header", ["x86_64-linux-gnu/asm/unistd_64.h", "asm-generic/unistd.h"])
def test_the_numbers_are_the_kernel_s(header):
    path = Path("/usr/include") / header
    if not path.exists():
        pytest.skip("the kernel's headers are not installed")
    index = 0 if "x86_64" in header else 1
    known = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text())}
    groups = syscalls.NETWORK | syscalls.FORKS | syscalls.PROGRAMS | syscalls.OTHER_PROCESSES | syscalls.SYSTEM | syscalls.FILES
    judged = {
        name.lower(): getattr(syscalls, name) for name in ("CLONE", "CLONE3", "KILL", "TGKILL", "IOCTL", "PRCTL", "FCNTL", "FALLOCATE")
    }
    listed = {name: numbers[index] for name, numbers in (groups | judged | {"prlimit64": syscalls.PRLIMIT}).items()}
    assert {name: number for name, number in listed.items() if number is not None and known.get(name) != number} == {}
    assert {name for name, number in listed.items() if number is None} & known.keys() == set()
