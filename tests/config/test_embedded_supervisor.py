"""The supervisor's promises, with small programs in the place of web and workers."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from config.embedded import running, stop_services
from config.embedded.stack import hold

PROJECT = Path(__file__).resolve().parents[2]
EXTERNAL = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}

STACK = """
import json, pathlib, sys
from config.embedded.children import Program
from config.embedded.foreground import up
home, wanted, set_up = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
sys.exit(up(home, wanted=[Program(name, [sys.executable, "-c", code]) for name, code in wanted.items()],
            set_up=[[sys.executable, "-c", code] for code in set_up], check=lambda: None))
"""
SLEEPER = "import time; print('up', flush=True); time.sleep(120)"


@pytest.fixture
def home(tmp_path_factory):
    """A home that the servers' user can reach, emptied of processes afterwards."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="lectern-"))
    folder.chmod(0o755)
    yield folder / "home"
    supervise(folder / "home", "stop")
    stop_services(folder / "home")
    shutil.rmtree(folder, ignore_errors=True)


def variables(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LECTERN_", "DATABASE_", "REDIS_"))}
    return {**kept, "LECTERN_HOME": str(home), **more}


def start_stack(home: Path, wanted: dict[str, str], *, set_up: tuple[str, ...] = (), **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STACK, str(home), json.dumps(wanted), json.dumps(set_up)],
        cwd=PROJECT,
        env=variables(home, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def supervise(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "config.embedded.supervisor", *arguments],
        cwd=PROJECT,
        env=variables(home, **more),
        capture_output=True,
        text=True,
        timeout=60,
    )


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """The lines up to the first that matches; a stack that ends before is a failure that shows what it said."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if re.search(pattern, line):
            return "".join(lines)
    raise AssertionError(f"no {pattern!r} in:\n{''.join(lines)}")


def test_a_stack_starts_says_what_it_does_and_stops_in_seconds(home):
    stack = start_stack(home, {"one": SLEEPER, "second": SLEEPER}, set_up=("print('tables')",), **EXTERNAL)
    first = read_until(stack, r"^(one|second) .*\| up")
    said = read_until(stack, r"^(one|second) .*\| up")
    assert "setup   | tables" in first, "prefixes are aligned and the preparations come first"
    assert "Ctrl-C stops everything" in first + said
    assert not (home / "postgres").exists(), "external services: nothing embedded is started"

    second = supervise(home, "up", **EXTERNAL)
    assert second.returncode == 3
    assert second.stdout.startswith("Lectern is already starting; `make stop` stops it.\n"), "no web process listens"
    assert supervise(home, "up", "--if-stopped", **EXTERNAL).returncode == 0
    figures = [json.loads(line) for line in supervise(home, "status", "--json").stdout.splitlines()]
    assert [figure["name"] for figure in figures] == ["supervisor", "one", "second"]
    assert all(figure["rss_mb"] > 1 for figure in figures)

    began = time.monotonic()
    stack.send_signal(signal.SIGINT)
    rest = stack.communicate(timeout=20)[0]
    assert stack.returncode == 0, rest
    assert time.monotonic() - began < 5
    assert not any(psutil.pid_exists(figure["pid"]) for figure in figures)
    assert "Nothing is running" in supervise(home, "status").stdout


def test_a_child_that_dies_is_started_again_and_said(home):
    stack = start_stack(home, {"weak": "import sys; print('born', flush=True); sys.exit(7)", "firm": SLEEPER}, **EXTERNAL)
    said = read_until(stack, "starting it again in 2 s")
    assert "weak    | born" in said
    assert "weak ended with code 7; starting it again in 1 s" in said
    victim = next(json.loads(line)["pid"] for line in supervise(home, "status", "--json").stdout.splitlines() if '"firm"' in line)
    os.kill(victim, signal.SIGKILL)
    assert "firm was ended by SIGKILL" in read_until(stack, "firm was ended")
    stack.terminate()
    stack.communicate(timeout=20)


def test_children_that_do_not_listen_and_what_they_started_are_ended(home):
    stubborn = (
        "import signal, subprocess, sys, time\n"
        "for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT): signal.signal(number, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)'], start_new_session=True)\n"
        "print('grandchild', child.pid, flush=True)\ntime.sleep(120)"
    )
    stack = start_stack(home, {"deaf": stubborn}, **EXTERNAL)
    grandchild = int(re.search(r"grandchild (\d+)", read_until(stack, "grandchild"))[1])
    stack.send_signal(signal.SIGINT)
    read_until(stack, "stopping")
    stack.send_signal(signal.SIGINT)
    began = time.monotonic()
    stack.communicate(timeout=20)
    assert time.monotonic() - began < 3, "the second wish kills at once"
    assert not psutil.pid_exists(grandchild) or psutil.Process(grandchild).status() == psutil.STATUS_ZOMBIE


def test_preparations_that_fail_stop_the_start(home):
    stack = start_stack(home, {"never": SLEEPER}, set_up=("raise SystemExit(9)",), **EXTERNAL)
    said = stack.communicate(timeout=20)[0]
    assert stack.returncode == 9
    assert "the stack does not start" in said
    assert "up" not in said.split("stopped")[1]


def test_a_killed_supervisor_leaves_nothing_behind_for_the_next(home):
    first = start_stack(home, {"one": SLEEPER})
    read_until(first, r"^one .*up")
    before = running(home)
    child = next(json.loads(line)["pid"] for line in supervise(home, "status", "--json").stdout.splitlines() if '"one"' in line)
    first.kill()
    first.communicate()
    assert psutil.pid_exists(child)
    second = start_stack(home, {"one": SLEEPER})
    said = read_until(second, r"^one .*up")
    assert "ended what an earlier stack had left running: one" in said
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    assert running(home) == before, "the database is adopted, not started again"

    os.kill(before.valkey_pid, signal.SIGKILL)
    read_until(second, "valkey ended; starting again")
    deadline = time.monotonic() + 10
    while (now := running(home)).valkey_pid in (None, before.valkey_pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert now.redis_url == before.redis_url
    assert supervise(home, "stop").stdout == "Stopped.\n"
    second.communicate(timeout=20)
    assert running(home) is None


@pytest.mark.soak
def test_exec_brings_services_and_takes_them_away(home):
    names = ["DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "LECTERN_SECRET_KEY"]
    code = f"import json, os; print(json.dumps({{name: os.environ.get(name) for name in {names}}}))"
    done = supervise(home, "exec", "--", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert all(json.loads(done.stdout).values())
    assert running(home) is None
    assert supervise(home, "exec", "--", sys.executable, "-c", "raise SystemExit(5)", **EXTERNAL).returncode == 5
    given = supervise(home, "exec", "--", sys.executable, "-c", code, LECTERN_SECRET_KEY="k" * 40, **EXTERNAL)
    assert json.loads(given.stdout) == {**EXTERNAL, "DATABASE_OWNER_URL": None, "LECTERN_SECRET_KEY": "k" * 40}


def test_a_port_that_is_taken_gives_the_next(home):
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        program = "import os; print('port', os.environ['LECTERN_PORT'], flush=True)"
        stack = start_stack(home, {"one": program}, LECTERN_PORT=str(port), **EXTERNAL)
        said = read_until(stack, r"port \d+$")
        stack.terminate()
        stack.communicate(timeout=20)
    assert f"port {port} is taken, using" in said
    assert int(re.search(r"port (\d+)$", said.strip())[1]) > port


@pytest.mark.soak
def test_a_given_server_that_does_not_answer_is_named_before_anything_starts(home):
    began = time.monotonic()
    given = {"LECTERN_PORT": "8000", "REDIS_URL": "redis://:hunter2secret@127.0.0.1:1/0"}
    done = supervise(home, "up", **given)
    assert done.returncode == 1
    assert done.stderr.startswith("lectern: REDIS_URL is set, but the Redis or Valkey it names cannot be used (")
    assert done.stderr.count("\n") == 1
    assert "hunter2secret" not in done.stdout + done.stderr
    assert 3 < time.monotonic() - began < 12, "a server that starts beside us gets some seconds"
    assert not (home / "postgres").exists()

    detached = supervise(home, "up", "--detach", DATABASE_URL="postgresql://lectern:hunter2secret@127.0.0.1:1/none")
    assert detached.returncode == 1
    assert detached.stderr.startswith("lectern: DATABASE_URL is set, but the Postgres it names cannot be used (")
    assert "hunter2secret" not in detached.stdout + detached.stderr


@pytest.mark.soak
def test_ctrl_c_while_it_waits_is_a_sentence(home):
    command = [sys.executable, "-m", "config.embedded.supervisor", "up", "--detach"]
    waiting = subprocess.Popen(
        command, cwd=PROJECT, env=variables(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert waiting.stdout.readline().startswith("Lectern is starting")
    deadline = time.monotonic() + 20
    while not (home / "stack.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    waiting.send_signal(signal.SIGINT)
    said = waiting.communicate(timeout=20)[1]
    assert waiting.returncode == 130
    assert said == "\nThe stack goes on starting in the background; `make stop` stops it.\n"
    assert supervise(home, "stop").stdout == "Stopped.\n"


@pytest.mark.soak
def test_who_starts_at_the_same_time_as_another_waits_and_leaves_its_log_alone(home):
    log = home / "log" / "stack.log"
    log.parent.mkdir(parents=True)
    log.write_text("the first words of another\n")
    with hold(home / "start.lock", exclusive=True):
        second = subprocess.Popen(
            [sys.executable, "-m", "config.embedded.supervisor", "up", "--detach"],
            cwd=PROJECT,
            env=variables(home, **EXTERNAL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(3)
    said, why = second.communicate(timeout=20)
    assert (second.returncode, said) == (4, "")
    assert "The stack ended" in why
    assert log.read_text() == "the first words of another\n"


def test_it_is_starting_until_the_web_port_listens(home):
    web = (
        "import os, socket, sys, time\nsys.stdin.read(0); print('waits', flush=True); time.sleep(3)\n"
        "s = socket.create_server(('127.0.0.1', int(os.environ['LECTERN_PORT']))); time.sleep(120)"
    )
    stack = start_stack(home, {"web": web}, **EXTERNAL)
    read_until(stack, "waits")
    assert supervise(home, "status").stdout.startswith("Lectern is starting\n")
    url = re.search(r"running at (\S+) - Ctrl-C", read_until(stack, "running at"))[1]
    assert supervise(home, "status").stdout.startswith(f"Lectern is running: {url}\n")
    assert supervise(home, "up", **EXTERNAL).stdout.startswith(f"Lectern is already running at {url}; `make stop` stops it.\n")
    stack.terminate()
    stack.communicate(timeout=20)


def test_a_reader_that_leaves_early_sees_no_traceback(home):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "config.embedded.supervisor", "status"]
    done = subprocess.run(command, cwd=PROJECT, env=variables(home), stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_start_is_waited_for_as_long_as_its_log_grows(tmp_path, monkeypatch):
    from config.embedded import supervisor

    monkeypatch.setattr(supervisor, "READY_SECONDS", 0.3)
    monkeypatch.setattr(supervisor, "LONGEST_SECONDS", 1.2)
    log = tmp_path / "stack.log"
    patience, began = supervisor.Patience(log), time.monotonic()
    while time.monotonic() - began < 0.9:
        log.write_text("x" * int(1000 * time.monotonic() % 1_000_000))
        assert patience.is_left()
        time.sleep(0.02)
    while patience.is_left():
        time.sleep(0.02)
    assert time.monotonic() - began >= 1.1
    other = supervisor.Patience(tmp_path / "silent.log")
    assert other.is_left()
    time.sleep(0.35)
    assert not other.is_left()
