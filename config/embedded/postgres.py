"""The embedded Postgres: made, started, adopted and stopped.

It listens on 127.0.0.1 with passwords and has no Unix socket, so the length of the home's path does not matter (a socket's path may
have about 100 characters). The port is kept across restarts: processes that hold the URL reconnect.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from config.embedded.binaries import postgres_programs
from config.embedded.credentials import Credentials
from config.embedded.failures import ServiceError
from config.embedded.homes import Account, own_folder
from config.embedded.processes import free_port, is_running, log_tail, run, server_environment, spawn, stop_process

START_SECONDS = 180.0  # a first start on a slow disk; a server that ended is told at once
# SIGINT is Postgres's fast shutdown; SIGTERM would wait for every client to leave. SIGQUIT is the immediate one.
STOP_SIGNALS = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "512MB",  # an HNSW build that does not fit is many times slower
    "max_parallel_maintenance_workers": "2",
    "max_locks_per_transaction": "256",  # partitions: one lock each
    "jit": "off",  # compiling costs more than these queries take
    "random_page_cost": "1.1",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
TEST_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True)
class Server:
    pid: int
    port: int


def _data(home: Path) -> Path:
    return home / "postgres" / "data"


def _pid_file(home: Path) -> list[str]:
    try:
        return (_data(home) / "postmaster.pid").read_text().splitlines()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def find_server(home: Path) -> Server | None:
    """The server that runs on this home's data, ready or not, whoever started it; reads one file."""
    lines = _pid_file(home)
    if len(lines) < 4 or not lines[0].strip().isdigit() or not lines[3].strip().isdigit():
        return None
    pid = int(lines[0])
    return Server(pid=pid, port=int(lines[3])) if is_running(pid, "postgres") else None


def _initialise(home: Path, *, programs: Path, credentials: Credentials, user: Account) -> None:
    """initdb beside the place where the data will be, then a rename: an interrupted one leaves nothing that looks finished."""
    scratch = home / "postgres" / "data.new"
    shutil.rmtree(scratch, ignore_errors=True)
    descriptor, name = tempfile.mkstemp(dir=home / "postgres", prefix=".password-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(credentials.superuser_password + "\n")
        if os.geteuid() == 0:
            os.chown(name, user.uid, user.gid)
        # The builtin provider folds and compares as Unicode says on every system; the operating system's locales do not.
        options = "-E UTF8 --locale-provider=builtin --builtin-locale=C.UTF-8 -T english -A scram-sha-256 -U postgres --no-instructions"
        run(
            [str(programs / "initdb"), "-D", str(scratch), *options.split(), f"--pwfile={name}"],
            user=user,
            doing=f"Making a database in {home / 'postgres'}",
        )
    finally:
        os.unlink(name)
    scratch.rename(_data(home))


def _small_shared_memory() -> bool:
    """Containers give /dev/shm 64 MB; a parallel index build wants maintenance_work_mem there and would fail."""
    try:
        status = os.statvfs("/dev/shm")
    except OSError:
        return False
    return status.f_blocks * status.f_frsize < 1_000_000_000


def _connects(port: int, password: str) -> str | None:
    """None when the superuser can connect, else why not."""
    import psycopg

    try:
        with psycopg.connect(
            host="127.0.0.1", port=port, user="postgres", password=password, dbname="postgres", connect_timeout=3, sslmode="disable"
        ) as connection:
            connection.execute("SELECT 1")
    except psycopg.Error as error:
        return str(error).strip()
    return None


def _await_ready(home: Path, *, pid: int, port: int, child: subprocess.Popen[bytes] | None, credentials: Credentials) -> bool:
    """True once the server answers AND the pid file names it; False when our child ended. Another server on the port is not ours."""
    deadline = time.monotonic() + START_SECONDS
    reason: str | None = "it did not answer"
    while time.monotonic() < deadline:
        if child is not None and child.poll() is not None:
            return False
        server = find_server(home)
        if server is None and child is None:
            return False
        if server is not None and server.pid == pid and server.port == port:
            reason = _connects(port, credentials.superuser_password)
            if reason is None:
                return True
            if "password authentication failed" in reason:
                break
        time.sleep(0.03)
    log = home / "log" / "postgres.log"
    raise ServiceError(f"Postgres runs (process {pid}, port {port}) but cannot be used: {reason}. Its log is {log}.")


def _provision(port: int, *, programs: Path, credentials: Credentials) -> None:
    script = Path(__file__).with_name("provision.sql")
    target = ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "postgres"]
    done = subprocess.run(
        [str(programs / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", *target],
        input=script.read_text(),  # not -f: psql may run where only we can read the project
        text=True,
        capture_output=True,
        timeout=60,
        env=server_environment(programs)
        | {
            "PGPASSWORD": credentials.superuser_password,
            "PGSSLMODE": "disable",
            "LECTERN_OWNER_PASSWORD": credentials.owner_password,
            "LECTERN_APP_PASSWORD": credentials.app_password,
        },
    )
    if done.returncode:
        raise ServiceError(f"Making the roles and extensions failed: {done.stderr.strip()[-800:]}")


def start_postgres(home: Path, *, credentials: Credentials, user: Account, port: int | None = None, test_mode: bool = False) -> Server:
    """Adopt the server of this home or start one, and see that roles, database and extensions are there. Call with the home's lock."""
    own_folder(home / "postgres", user)
    programs = postgres_programs(user)
    if not _data(home).exists():
        _initialise(home, programs=programs, credentials=credentials, user=user)
    found = find_server(home)
    if found is not None and _await_ready(home, pid=found.pid, port=found.port, child=None, credentials=credentials):
        server = found
    else:
        server = _launch(home, programs=programs, credentials=credentials, user=user, port=port, test_mode=test_mode)
    _provision(server.port, programs=programs, credentials=credentials)
    return server


def _launch(home: Path, *, programs: Path, credentials: Credentials, user: Account, port: int | None, test_mode: bool) -> Server:
    lines = _pid_file(home)
    if lines and lines[0].strip().isdigit() and not is_running(int(lines[0]), "postgres"):
        # The number may belong to another program by now, and Postgres would refuse to start because of it.
        (_data(home) / "postmaster.pid").unlink(missing_ok=True)
    settings = SETTINGS | (TEST_SETTINGS if test_mode else {})
    if _small_shared_memory():
        settings["dynamic_shared_memory_type"] = "mmap"
    log = home / "log" / "postgres.log"
    for attempt in range(3):
        number = free_port(port if attempt == 0 else None)
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        child = spawn([str(programs / "postgres"), "-D", str(_data(home)), "-p", str(number), *options], user=user, log=log)
        if _await_ready(home, pid=child.pid, port=number, child=child, credentials=credentials):
            child.returncode = 0  # it outlives us on purpose; without this, Popen warns about a child still running
            return Server(pid=child.pid, port=number)
    raise ServiceError(f"Postgres does not start. The end of {log}:\n{log_tail(log)}")


def stop_postgres(home: Path) -> bool:
    """Fast shutdown; True if one ran."""
    server = find_server(home)
    if server is None:
        return False
    stop_process(server.pid, program="postgres", signals=STOP_SIGNALS)
    return True
