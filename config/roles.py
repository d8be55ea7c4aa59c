"""What each process of a deployment runs: `python -m config.roles web | worker | beat | migrate`.

The supervisor starts the same commands on one machine; containers and service managers call this module.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from config.env import environment

PROJECT = Path(__file__).resolve().parents[1]
POOLS = ("prefork", "threads", "solo")


def web_command(*, host: str, port: int) -> list[str]:
    """The ASGI server. Open streams get three seconds when it is told to stop."""
    options = ["--host", host, "--port", str(port), "--timeout-graceful-shutdown", "3", "--no-server-header"]
    return [sys.executable, "-m", "uvicorn", "config.asgi:application", *options]


def worker_command(*, name: str, queues: str, pool: str, concurrency: int) -> list[str]:
    """A worker of some queues. Gossip and mingle are off: they cost a start's seconds and serve nothing here."""
    options = ["-n", f"{name}@%h", "-Q", queues, "-P", pool, "-c", str(concurrency), "--without-gossip", "--without-mingle", "-l", "INFO"]
    return [sys.executable, "-m", "celery", "-A", "config", "worker", *options]


def beat_command() -> list[str]:
    """The clock; its schedules are rows. No pid file: two of them cannot fire the same time twice."""
    scheduler = "django_celery_beat.schedulers:DatabaseScheduler"
    return [sys.executable, "-m", "celery", "-A", "config", "beat", "--scheduler", scheduler, "--pidfile=", "-l", "INFO"]


def set_up_commands() -> list[list[str]]:
    """Run to their end, in order, before anything else starts: tables by the owner's role, then the first rows."""
    manage = [sys.executable, str(PROJECT / "manage.py")]
    return [[*manage, "migrate", "--database", "owner", "--verbosity", "1"], [*manage, "bootstrap"]]


def parse_role(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m config.roles", description=__doc__.partition("\n")[0])
    roles = parser.add_subparsers(dest="role", required=True)
    web = roles.add_parser("web", help="the web server: API, admin, streams")
    web.add_argument("--host", default="0.0.0.0")
    web.add_argument("--port", type=int, help="default: LECTERN_PORT, 8000")
    worker = roles.add_parser("worker", help="a worker of one or more queues")
    worker.add_argument("--queues", default="crawl,default")
    worker.add_argument("--pool", choices=POOLS, help="default: what the queue needs")
    worker.add_argument("--concurrency", type=int, help="default: what the queue needs")
    worker.add_argument("--name", help="default: the first queue")
    roles.add_parser("beat", help="the scheduler; one is enough")
    roles.add_parser("migrate", help="tables and first rows, then end")
    return parser.parse_args(argv)


def worker_defaults(queues: str) -> tuple[str, int]:
    """Pool and concurrency that fit the queues: one model in one thread (embedding, recognition), extraction in threads over child
    processes, else processes."""
    names = {name.strip() for name in queues.split(",")}
    if names & {"embed", "recognize"}:
        return "solo", 1
    return ("threads", 2) if "extract" in names else ("prefork", 2)


def main(argv: Sequence[str]) -> int:
    arguments = parse_role(argv)
    os.chdir(PROJECT)
    if arguments.role == "migrate":
        for command in set_up_commands():
            code = subprocess.run(command).returncode
            if code:
                return code
        return 0
    if arguments.role == "web":
        command = web_command(host=arguments.host, port=arguments.port or environment().port)
    elif arguments.role == "worker":
        pool, concurrency = worker_defaults(arguments.queues)
        command = worker_command(
            name=arguments.name or arguments.queues.split(",")[0].strip(),
            queues=arguments.queues,
            pool=arguments.pool or pool,
            concurrency=arguments.concurrency or concurrency,
        )
    else:
        command = beat_command()
    sys.stdout.flush()
    return os.execv(command[0], command)  # never comes back; signals of a container reach the process itself


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
