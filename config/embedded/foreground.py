"""A stack in the foreground: services, then tables and first rows, then the processes, tended until somebody says stop."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from config.embedded import stack
from config.embedded.children import Children, Program, describe_exit, kill_tree, launch, programs
from config.embedded.console import Console
from config.embedded.credentials import secret_key
from config.embedded.failures import ServiceError
from config.embedded.given import check_given
from config.embedded.homes import prepare_home
from config.embedded.processes import free_port
from config.embedded.services import Services, running, start_services, stop_services
from config.env import environment
from config.roles import set_up_commands
from config.scratch import clear_scratch

WATCH_SECONDS = 2.0
HOST = "127.0.0.1"
# Celery says it in every worker. What it warns of is pickle, which config.queues does not accept.
ROOT_WARNING = "ignore:You're running the worker with superuser privileges"


def start_missing(home: Path) -> Services | None:
    """Start the services that no variable names; None where both are given."""
    database, broker = not environment().database_url, not environment().redis_url
    return start_services(home=home, postgres=database, valkey=broker) if database or broker else None


def child_environment(home: Path, services: Services | None, *, port: int | None) -> dict[str, str]:
    """Ours, and what the children need to find services, home, key and each other."""
    found = {**os.environ, "LECTERN_HOME": str(home), **(services.environment() if services else {})}
    if not environment().secret_key:
        found["LECTERN_SECRET_KEY"] = secret_key(home)
    if os.geteuid() == 0:
        found["PYTHONWARNINGS"] = ",".join(filter(None, (found.get("PYTHONWARNINGS"), ROOT_WARNING)))
    if port is not None:
        found["LECTERN_PORT"] = str(port)
    return found


class _Signals:
    """Counts the wishes to stop, so that the loop can end by itself: once = stop, twice = kill."""

    def __init__(self) -> None:
        self.count = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self.count += 1


def _next_port(wanted: int) -> int:
    for port in range(wanted, wanted + 50):
        if free_port(port) == port:
            return port
    return free_port()


def _set_up(commands: Sequence[Sequence[str]], *, variables: dict[str, str], console: Console, signals: _Signals) -> int:
    for command in commands:
        process = launch(command, environment=variables)
        thread = console.follow("setup", process)
        while process.poll() is None:
            if signals.count:
                kill_tree(process.pid)
            time.sleep(0.05)
        thread.join(5)
        if process.returncode:
            if not signals.count:
                console.say(f"{' '.join(command[1:3])} {describe_exit(process.returncode)}; the stack does not start")
            return process.returncode if process.returncode > 0 else 1
    return 0


def up(
    home: Path,
    *,
    wanted: Sequence[Program] | None = None,
    set_up: Sequence[Sequence[str]] | None = None,
    check: Callable[[], None] = check_given,
) -> int:
    """Start everything and tend it until told to stop; then stop everything.

    `wanted` and `set_up` are the product's processes and preparations unless given; `check` raises ServiceError before anything starts.
    """
    prepare_home(home)
    claim = stack.claim_stack(home)
    if claim is None:
        print(stack.report(home, already=True))
        return 3
    try:
        check()
    except BaseException:
        claim.close()
        raise
    signals = _Signals()
    port = _next_port(environment().port)
    wanted = programs(host=HOST, port=port) if wanted is None else wanted
    set_up = set_up_commands() if set_up is None else set_up
    console = Console(["setup", *(program.name for program in wanted)])
    with claim:
        left = stack.end_leftovers(home)
        if left:
            console.say(f"ended what an earlier stack had left running: {', '.join(left)}")
        stack.write_stack(home, url=None, pids={})
        try:
            services = start_missing(home)
            if services:
                pids = {"postgres": services.postgres_pid, "valkey": services.valkey_pid}
                console.say(f"services in {home}: " + ", ".join(f"{name} {pid or 'external'}" for name, pid in pids.items()))
            variables = child_environment(home, services, port=port)
            code = 0 if signals.count else _set_up(set_up, variables=variables, console=console, signals=signals)
            if not code and not signals.count:
                if port != environment().port:
                    console.say(f"port {environment().port} is taken, using {port}")
                children = Children(wanted, environment=variables, console=console)
                _tend(home, children, services, url=f"http://{HOST}:{port}", console=console, signals=signals)
            return 0 if signals.count else code
        except ServiceError as error:
            console.say(error.message)
            return 1
        finally:
            stopped = stop_services(home)
            stack.clear_stack(home)
            clear_scratch()  # of workers that could not wait for their extraction children
            console.say("stopped" + (f" ({', '.join(stopped)} too)" if stopped else ""))


def _tend(home: Path, children: Children, services: Services | None, *, url: str, console: Console, signals: _Signals) -> None:
    console.say("starting - Ctrl-C stops everything")
    checked = time.monotonic()
    ready = False
    try:
        while not signals.count:
            if children.tend():
                stack.write_stack(home, url=url, pids=children.pids())
            if not ready and stack.listens(url):
                ready = True
                console.say(f"running at {url} - Ctrl-C stops everything")
            if services is not None and time.monotonic() - checked > WATCH_SECONDS:
                checked = time.monotonic()
                services = _revive(home, services, console=console)
            time.sleep(0.2)
        console.say("stopping (once more to kill)")
    finally:
        children.stop(at_once=lambda: signals.count > 1)


def _revive(home: Path, services: Services, *, console: Console) -> Services:
    """Start a service again that died under us; it comes back on its port, and the children reconnect."""
    now = running(home)
    dead = [name for name in ("postgres", "valkey") if getattr(services, f"{name}_pid") and not getattr(now, f"{name}_pid", None)]
    if not dead:
        return services
    console.say(f"{' and '.join(dead)} ended; starting again")
    try:
        return start_missing(home) or services
    except ServiceError as error:
        console.say(error.message)
        return services
