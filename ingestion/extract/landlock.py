"""Landlock by its three system calls: the process may read below a few folders, write in one, run nothing but what is named, open no TCP
connection."""

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
GET_ABI = 1
RULE_PATH_BENEATH = 1
PR_SET_NO_NEW_PRIVS = 38

EXECUTE, READ_FILE, READ_DIR = 1 << 0, 1 << 2, 1 << 3
# Plain files: written, made, removed and shortened; no folders, links, sockets or devices, and no moving in or out.
WRITE = 1 << 1 | 1 << 5 | 1 << 8 | 1 << 14
# Every right a file system can refuse, by the kernel interface that brought the last of them.
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
TCP_RIGHTS = 0b11
SCOPES = 0b11  # abstract sockets and signals to other processes
SCOPES_SINCE = 6


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def interface() -> tuple[int, str]:
    """The version of Landlock on this machine, 0 if it has none, and then why."""
    if not sys.platform.startswith("linux"):
        return 0, f"no Landlock on {sys.platform}"
    abi = _libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), GET_ABI)
    return (abi, "") if abi > 0 else (0, f"this kernel has no Landlock ({os.strerror(ctypes.get_errno())})")


def restrict(
    *, readable: Iterable[Path], listable: Iterable[Path] = (), writable: Iterable[Path] = (), executable: Iterable[Path] = ()
) -> str:
    """Closes this process in for ever and says what holds, as "landlock ABI 7" or "open: REASON". `listable` folders show names only; in
    `writable` ones plain files may be read, made, changed and removed; `executable` files are programs that it may run."""
    abi, reason = interface()
    if reason:
        return f"open: {reason}"
    libc = _libc()
    files = FILE_RIGHTS[max(level for level in FILE_RIGHTS if level <= abi)]
    rules = _Ruleset(files, TCP_RIGHTS if abi >= 4 else 0, SCOPES if abi >= SCOPES_SINCE else 0)
    size = 24 if abi >= SCOPES_SINCE else 16 if abi >= 4 else 8
    ruleset = _checked(libc.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0))
    writing = (READ_FILE | READ_DIR | WRITE) & files
    rules_of = ((readable, READ_FILE | READ_DIR), (listable, READ_DIR), (writable, writing), (executable, EXECUTE | READ_FILE))
    for paths, rights in rules_of:
        for path in paths:
            _allow(libc, ruleset, path, rights)
    _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)
    return f"landlock ABI {abi}"


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    rule = _PathBeneath(rights if path.is_dir() else rights & ~READ_DIR, handle)
    _checked(libc.syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, ctypes.byref(rule), 0))
    os.close(handle)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result
