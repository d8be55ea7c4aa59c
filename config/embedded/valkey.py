"""The embedded Valkey: started with a configuration of our own, adopted and stopped.

Everything in it can be lost (Postgres is the truth), but an append-only file keeps queued wake-ups across a crash.
"""

import os
import signal
import time
from pathlib import Path

from config.embedded.binaries import valkey_program
from config.embedded.credentials import Credentials
from config.embedded.failures import ServiceError
from config.embedded.homes import Account, own_folder
from config.embedded.postgres import Server
from config.embedded.processes import free_port, is_running, log_tail, spawn, stop_process

START_SECONDS = 30.0
STOP_SIGNALS = ((signal.SIGTERM, 10.0),)


def _folder(home: Path) -> Path:
    return home / "valkey"


def find_server(home: Path) -> Server | None:
    """The server of this home, whoever started it; reads two small files."""
    try:
        pid = int((_folder(home) / "valkey.pid").read_text())
        lines = (_folder(home) / "valkey.conf").read_text().splitlines()
    except (OSError, ValueError):
        return None
    ports = [int(line.split()[1]) for line in lines if line.startswith("port ")]
    return Server(pid=pid, port=ports[0]) if ports and is_running(pid, "valkey-server") else None


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _configure(home: Path, *, port: int, credentials: Credentials, user: Account) -> Path:
    folder = _folder(home)
    file = folder / "valkey.conf"
    text = "\n".join(
        [
            "bind 127.0.0.1",
            f"port {port}",
            f"requirepass {credentials.valkey_password}",
            f"dir {_quoted(folder)}",
            f"pidfile {_quoted(folder / 'valkey.pid')}",
            "daemonize no",
            "appendonly yes",
            "appendfsync everysec",
            'save ""',
            "maxmemory-policy noeviction",
            "",
        ]
    )
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as output:
        output.write(text)
    if os.geteuid() == 0:
        os.chown(file, user.uid, user.gid)
    return file


def _answering_pid(port: int, password: str) -> int | None:
    """The process id that the server on the port gives for itself; None while it does not answer or is loading."""
    import redis

    client = redis.Redis(host="127.0.0.1", port=port, password=password, socket_timeout=3, socket_connect_timeout=3)
    try:
        client.ping()
        return int(client.info("server")["process_id"])
    except redis.RedisError:
        return None
    finally:
        client.close()


def _await_ready(server: Server, *, credentials: Credentials, log: Path) -> bool:
    """True once the server answers and says that it is this process; False when it ended."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if _answering_pid(server.port, credentials.valkey_password) == server.pid:
            return True
        if not is_running(server.pid, "valkey-server"):
            return False
        time.sleep(0.02)
    raise ServiceError(f"Valkey runs (process {server.pid}, port {server.port}) but does not answer. Its log is {log}.")


def start_valkey(home: Path, *, credentials: Credentials, user: Account, port: int | None = None) -> Server:
    """Adopt the server of this home or start one. Call with the home's lock."""
    own_folder(_folder(home), user)
    log = home / "log" / "valkey.log"
    found = find_server(home)
    if found is not None and _await_ready(found, credentials=credentials, log=log):
        return found
    program = valkey_program(user)
    for attempt in range(3):
        (_folder(home) / "valkey.pid").unlink(missing_ok=True)
        number = free_port(port if attempt == 0 else None)
        child = spawn([str(program), str(_configure(home, port=number, credentials=credentials, user=user))], user=user, log=log)
        server = Server(pid=child.pid, port=number)
        child_ready = _await_ready(server, credentials=credentials, log=log)
        child.returncode = 0  # as in postgres.py: left running on purpose
        if child_ready:
            return server
    raise ServiceError(f"Valkey does not start. The end of {log}:\n{log_tail(log)}")


def stop_valkey(home: Path) -> bool:
    """Ask it to write its file and leave; True if one ran."""
    server = find_server(home)
    if server is None:
        return False
    stop_process(server.pid, program="valkey-server", signals=STOP_SIGNALS)
    return True
