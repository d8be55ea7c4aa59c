"""Namespaces for the browser: a network that leads nowhere, and process numbers of its own, so that all of it ends at once."""

import ctypes
import os
import signal
import sys
from contextlib import suppress

NEW_USER, NEW_PROCESSES, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1


def isolate() -> str:
    """Goes on in a child, the first process of the new namespaces: when it ends, the kernel ends whatever it started. Says what holds,
    as "network and processes apart" or "open: REASON". The caller has one thread and nothing open that must be open once."""
    if not sys.platform.startswith("linux"):
        return f"open: no namespaces on {sys.platform}"
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    apart = NEW_NETWORK | NEW_PROCESSES
    # A privileged user needs no user namespace of its own, and containers often refuse one.
    if user != 0 or libc.unshare(apart) != 0:
        if libc.unshare(NEW_USER | apart) != 0:
            return f"open: no namespaces ({os.strerror(ctypes.get_errno())})"
        _keep_names(user, group)
    inside = os.fork()
    if inside:
        _wait_for(inside)
    die_with_parent()
    return "network and processes apart"


def die_with_parent() -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _keep_names(user: int, group: int) -> None:
    """The same user and group inside as outside."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with suppress(OSError), open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _wait_for(inside: int) -> None:
    for descriptor in (0, 1):  # or the pipes would stay open after the one inside has closed them
        os.close(descriptor)
    _, status = os.waitpid(inside, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
