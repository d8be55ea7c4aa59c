"""One log stream of many processes: every line under the name of who wrote it, never two lines in one."""

import os
import subprocess
import sys
import threading
from typing import IO, TextIO

COLOURS = (36, 32, 33, 35, 34, 96, 92, 95)
OWN_NAME = "lectern"


class Console:
    """Prefixes are aligned, and coloured on a terminal unless NO_COLOR is set. A reader that went away does not stop the stack."""

    def __init__(self, names: list[str], *, output: TextIO | None = None) -> None:
        self._output = output or sys.stdout
        self._width = max(len(name) for name in [*names, OWN_NAME])
        self._colour = self._output.isatty() and "NO_COLOR" not in os.environ
        self._colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
        self._lock = threading.Lock()

    def write(self, name: str, text: str) -> None:
        prefix = f"{name:<{self._width}} |"
        if self._colour:
            prefix = f"\x1b[{self._colours.get(name, 1)}m{prefix}\x1b[0m"
        with self._lock:
            try:
                self._output.write(f"{prefix} {text}\n")
                self._output.flush()
            except (OSError, ValueError):
                return

    def say(self, text: str) -> None:
        self.write(OWN_NAME, text)

    def follow(self, name: str, process: subprocess.Popen[bytes]) -> threading.Thread:
        """Copy the process's output, line by line, until it closes it."""
        thread = threading.Thread(target=self._copy, args=(name, process.stdout), name=f"log of {name}", daemon=True)
        thread.start()
        return thread

    def _copy(self, name: str, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self.write(name, line.decode(errors="replace").rstrip())
