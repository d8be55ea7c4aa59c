"""A filter on system calls, written by hand: no socket, no other process, no program, no change of limits, owners or mounts.

Landlock says which files; this takes away what Landlock does not know. What is refused fails with EPERM, so that a library that asks in
passing goes on; calls of another architecture end the process."""

import ctypes
import errno
import os
import platform
import struct
import sys

from ingestion.extract import syscalls

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SECCOMP, SET_MODE_FILTER, ALL_THREADS = (317, 277), 1, 1
PR_SET_PDEATHSIG = 1
# (index into syscalls.Numbers, audit number, the bit that marks x32 calls)
ARCHITECTURES = {"x86_64": (0, 0xC000003E, 0x40000000), "aarch64": (1, 0xC00000B7, None)}

# Instructions of classic BPF, and where struct seccomp_data has what they load.
LOAD, IF_EQUAL, IF_GREATER_EQUAL, IF_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
ALLOW, ERROR, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
REFUSED, UNKNOWN = ERROR | errno.EPERM, ERROR | errno.ENOSYS

CLONE_THREAD, CLONE_NEW_NAMESPACES = 0x10000, 0x7E020080
# What isatty and the like ask; other requests reach drivers and file attributes.
TERMINAL_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# Descriptors, flags and locks. Others name a process or a signal for the kernel to send (F_SETOWN, F_SETSIG), or hold up whoever opens the
# file (F_SETLEASE).
FILE_COMMANDS = (*range(8), 36, 37, 38, 1030, 1032)

Instruction = tuple[int, int, int, int]  # code, instructions to skip if true, if false, operand


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def restrict(*, programs: bool = False, signals_are_scoped: bool = False) -> str:
    """Filters this process, and all it starts, for ever; says what holds, as "seccomp" or "open: REASON". With `programs` it may fork and
    run what Landlock lets it run, and signal its children where Landlock keeps signals inside (`signals_are_scoped`)."""
    if reason := missing():
        return f"open: {reason}"
    code = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in program(platform.machine(), pid=os.getpid(), programs=programs, any_signal=programs and signals_are_scoped)
    )
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    number = SECCOMP[ARCHITECTURES[platform.machine()][0]]
    given = _Program(len(code) // 8, code)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(number, SET_MODE_FILTER, ALL_THREADS, ctypes.byref(given)):
        return f"open: the kernel takes no seccomp filter ({os.strerror(ctypes.get_errno())})"
    return "seccomp"


def missing() -> str:
    """Why this machine cannot filter system calls; "" if it can, as far as can be told without doing it."""
    if not sys.platform.startswith("linux"):
        return f"no seccomp on {sys.platform}"
    if platform.machine() not in ARCHITECTURES or struct.calcsize("P") != 8:
        return f"no seccomp filter for {platform.machine()}"
    # A null filter is a bad address to a kernel that filters, and a bad argument to one that does not.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0)
    return "" if ctypes.get_errno() == errno.EFAULT else f"this kernel has no seccomp ({os.strerror(ctypes.get_errno())})"


def program(machine: str, *, pid: int, programs: bool = False, any_signal: bool = False) -> list[Instruction]:
    """The filter for a machine, checked from top to bottom."""
    index, audit, foreign = ARCHITECTURES[machine]
    wanted: list[Instruction] = [(LOAD, 0, 0, ARCHITECTURE), (IF_EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL_PROCESS), (LOAD, 0, 0, NUMBER)]
    if foreign:
        wanted += [(IF_GREATER_EQUAL, 0, 1, foreign), (RETURN, 0, 0, KILL_PROCESS)]
    wanted += [(IF_GREATER_EQUAL, 0, 1, syscalls.NEWEST + 1), (RETURN, 0, 0, UNKNOWN)]
    wanted += _refused([syscalls.CLONE3], index, UNKNOWN)
    groups = [syscalls.NETWORK, syscalls.OTHER_PROCESSES, syscalls.FILES, syscalls.SYSTEM]
    groups += [] if programs else [syscalls.FORKS, syscalls.PROGRAMS]
    wanted += _refused([numbers for group in groups for numbers in group.values()], index, REFUSED)
    wanted += _judged(syscalls.CLONE[index], _no_bit(0, CLONE_NEW_NAMESPACES) if programs else _any_bit(0, CLONE_THREAD))
    if not any_signal:
        wanted += _judged(syscalls.KILL[index], _one_of(0, pid)) + _judged(syscalls.TGKILL[index], _one_of(0, pid))
    wanted += _judged(syscalls.PRLIMIT[index], _is_null(2))
    wanted += _judged(syscalls.IOCTL[index], _one_of(1, *TERMINAL_REQUESTS))
    wanted += _judged(syscalls.FCNTL[index], _one_of(1, *FILE_COMMANDS))
    # Any other mode may take room on the disk that the size of the file does not tell.
    wanted += _judged(syscalls.FALLOCATE[index], _one_of(1, 0))
    wanted += _judged(syscalls.PRCTL[index], [(LOAD, 0, 0, _low(0)), (IF_EQUAL, 0, 1, PR_SET_PDEATHSIG), (RETURN, 0, 0, REFUSED)])
    return [*wanted, (RETURN, 0, 0, ALLOW)]


def _refused(calls: list[syscalls.Numbers], index: int, answer: int) -> list[Instruction]:
    numbers = [call[index] for call in calls if call[index] is not None]
    return [step for number in numbers for step in ((IF_EQUAL, 0, 1, number), (RETURN, 0, 0, answer))]  # type: ignore[misc]


def _judged(number: int, judgement: list[Instruction]) -> list[Instruction]:
    """`judgement` returns a refusal or comes to its end: then the call is allowed."""
    return [(IF_EQUAL, 0, len(judgement) + 1, number), *judgement, (RETURN, 0, 0, ALLOW)]


def _one_of(argument: int, *values: int) -> list[Instruction]:
    compared = [(IF_EQUAL, len(values) - position, 0, value) for position, value in enumerate(values)]
    return [(LOAD, 0, 0, _low(argument)), *compared, (RETURN, 0, 0, REFUSED)]


def _any_bit(argument: int, bits: int) -> list[Instruction]:
    return [(LOAD, 0, 0, _low(argument)), (IF_ANY_BIT, 1, 0, bits), (RETURN, 0, 0, REFUSED)]


def _no_bit(argument: int, bits: int) -> list[Instruction]:
    return [(LOAD, 0, 0, _low(argument)), (IF_ANY_BIT, 0, 1, bits), (RETURN, 0, 0, REFUSED)]


def _is_null(argument: int) -> list[Instruction]:
    high = _low(argument) + 4
    return [
        *((LOAD, 0, 0, _low(argument)), (IF_EQUAL, 1, 0, 0), (RETURN, 0, 0, REFUSED)),
        *((LOAD, 0, 0, high), (IF_EQUAL, 1, 0, 0), (RETURN, 0, 0, REFUSED)),
    ]


def _low(argument: int) -> int:
    """Where the low half of an argument lies; both machines keep it first."""
    return ARGUMENTS + 8 * argument
