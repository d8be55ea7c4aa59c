"""A real Chroma server in a process of its own, from the package chromadb."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

PATIENCE = 60.0


def chroma_program() -> str | None:
    """Beside this Python, or on the PATH."""
    beside = Path(sys.executable).with_name("chroma")
    return str(beside) if beside.exists() else shutil.which("chroma")


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """The port that it listens at."""
    program = chroma_program()
    if program is None:
        raise FileNotFoundError("There is no program `chroma`: install requirements/stores.txt.")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = folder / "chroma.log"
    with log.open("wb") as output:
        command = [program, "run", "--path", str(folder / "data"), "--host", "127.0.0.1", "--port", str(port)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            _wait(process, port, log)
            yield port
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/api/v2/heartbeat", timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"Chroma did not start:\n{log.read_text(errors='replace')[-2000:]}")
