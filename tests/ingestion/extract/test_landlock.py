"""The closing-in itself, tried by a process that closes itself in."""

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
CODE = """
import os, socket, subprocess, sys
from pathlib import Path
from ingestion.extract.landlock import restrict
allowed, forbidden = Path(sys.argv[1]), Path(sys.argv[2])
state = restrict(readable=[allowed, Path("/usr"), Path("/lib")])
def tried(call):
    try:
        call()
    except OSError as error:
        return type(error).__name__
    return "done"
print(state)
print(tried(lambda: (allowed / "a.txt").read_text()))
print(tried(lambda: (forbidden / "b.txt").read_text()))
print(tried(lambda: (allowed / "new.txt").write_text("x")))
print(tried(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[3])), timeout=2)))
print(tried(lambda: subprocess.run(["/bin/true"])))
"""


def test_reads_below_its_folders_and_nothing_else(tmp_path):
    import socket

    allowed, forbidden = tmp_path / "allowed", tmp_path / "forbidden"
    for folder, name in ((allowed, "a.txt"), (forbidden, "b.txt")):
        folder.mkdir()
        (folder / name).write_text("text")
    with socket.create_server(("127.0.0.1", 0)) as server:
        arguments = [str(allowed), str(forbidden), str(server.getsockname()[1])]
        done = subprocess.run([sys.executable, "-c", CODE, *arguments], cwd=PROJECT, capture_output=True, text=True, check=True)
    state, *outcomes = done.stdout.split("\n")[:6]
    if state.startswith("open"):
        pytest.skip(f"no Landlock on this system ({state})")
    assert outcomes == ["done", "PermissionError", "PermissionError", "PermissionError", "PermissionError"]
    assert not (allowed / "new.txt").exists()


def test_state_is_told(sandbox):
    assert sandbox.sandbox_state().startswith(("landlock ABI ", "open: "))
