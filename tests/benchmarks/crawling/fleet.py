"""Crawls of ours, measured: until every page is read and cut. Nothing is embedded, so no worker of that stage is there."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from config.embedded import postgres, valkey
from tests.fleet import ROLES, Fleet, look_past_rules, wait_for
from tests.installation import Installation
from tests.servers.folder import Served

# One worker does everything in threads of one process; two share the work as an installation's do. Both read pages in child processes.
ONE = {"main": ("worker", "--queues", "crawl,default,extract", "--pool", "threads", "--concurrency", "4", "--name", "main")}
TWO = {name: ROLES[name] for name in ("main", "extract")}
WORKERS = {1: ONE, 2: TWO}
_LEFT = """
    SELECT run.listed_at IS NULL OR EXISTS (SELECT 1 FROM ingestion_runitem item WHERE item.run_id = run.id
                                               AND item.stage IN ('found', 'fetched'))
      FROM ingestion_ingestionrun run WHERE run.id = %s
"""
_DONE = """
    SELECT count(*) FILTER (WHERE item.stage = 'extracted'),
           extract(epoch FROM greatest(max(item.changed_at), run.listed_at) - run.created_at)
      FROM ingestion_ingestionrun run JOIN ingestion_runitem item ON item.run_id = run.id WHERE run.id = %s GROUP BY run.id
"""
# What an earlier crawl read would make the next one cheaper: the same bytes and texts are stored once.
_FORGET = "TRUNCATE kb_blob, kb_document, ingestion_embeddedtext, ingestion_ingestionrun CASCADE"


@dataclass(frozen=True, slots=True)
class Crawled:
    pages: int
    seconds: float
    cpu: Mapping[str, float] = field(default_factory=dict)  # seconds by part
    rss_mb: Mapping[str, float] = field(default_factory=dict)

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.seconds

    def cpu_ms_per_page(self) -> dict[str, float]:
        costs = {name: round(1000 * cost / max(1, self.pages), 2) for name, cost in self.cpu.items()}
        return costs | {"all": round(sum(costs.values()), 2)}


class Crawls:
    """The fleet of an installation as a crawler. `use` gives it one worker or two."""

    def __init__(self, installed: Installation) -> None:
        self.fleet: Fleet = installed.fleet
        self.client = installed.client
        self.home = Path(installed.environment["LECTERN_HOME"])
        self.database = look_past_rules(installed.environment, autocommit=True)

    def use(self, workers: int) -> None:
        """Fresh processes, so that their memory is that of what follows."""
        self.fleet.stop(*(name for name in self.fleet.processes if name not in ("web", "beat")))
        self.fleet.roles = {"web": ROLES["web"], "beat": ROLES["beat"], **WORKERS[workers]}
        self.fleet.processes = {name: process for name, process in self.fleet.processes.items() if name in self.fleet.roles}
        self.fleet.start()
        wait_for(self._are_up, seconds=120, what="the workers")

    def _are_up(self) -> bool:
        names = self.database.execute("SELECT name FROM ingestion_workerheartbeat WHERE seen_at > now() - interval '20 s'").fetchall()
        return {name.partition("@")[0] for (name,) in names} >= self.fleet.roles.keys() - {"web", "beat"}

    def crawl(self, site: Served, *, depth: int, pages: int = 50_000, seconds: float = 3600) -> Crawled:
        """One crawl of a site of which nothing is known."""
        self.database.execute(_FORGET)
        before = self._cpu(site)
        run = self.begin(site, depth=depth, pages=pages)
        wait_for(lambda: not self._left(run), seconds=seconds, what=f"the crawl (logs in {self.fleet.logs})", every=0.5)
        cpu = {name: spent - before[name] for name, spent in self._cpu(site).items()}
        found, took = self.database.execute(_DONE, [run]).fetchone()  # type: ignore[misc]
        self.client.call("POST", f"/runs/{run}/cancel")
        return Crawled(found, float(took), cpu, self.rss_mb())

    def begin(self, site: Served, *, depth: int, pages: int = 50_000, **source: Any) -> str:
        web = {"start_url": site.url, "max_depth": depth, "max_pages": pages, "request_delay_ms": 0}
        entry = {"name": "web", "web": web, "settings": {"time_budget_minutes": 1440, "max_segments_per_run": 1_000_000}, **source}
        knowledge_base, source_id = self.client.create_knowledge_base(f"crawl {time.time():.3f}", sources=[entry])
        return self.client.start(knowledge_base, source_id)

    def _left(self, run: str) -> bool:
        return bool(self.database.execute(_LEFT, [run]).fetchone()[0])  # type: ignore[index]

    def rss_mb(self) -> dict[str, float]:
        """The largest memory that any one process of each part has had."""
        return {name: max(map(peak_mb, pids), default=0.0) for name, pids in self._parts().items()}

    def _parts(self) -> dict[str, list[int]]:
        """Workers apart from the child processes that read pages for them."""
        parts: dict[str, list[int]] = {"children": []}
        for name in self.fleet.roles.keys() - {"web"}:
            parts[name] = []
            top = psutil.Process(self.fleet.processes[name].pid)
            for process in (top, *top.children(recursive=True)):
                reads = "ingestion.extract.child" in process.cmdline()
                parts["children" if reads else name].append(process.pid)
        return parts

    def _cpu(self, site: Served) -> dict[str, float]:
        costs = {name: sum(map(cpu_seconds, pids)) for name, pids in self._parts().items()}
        for name in self.fleet.roles.keys() & {"main", "extract"}:  # children that were replaced
            costs["children"] += sum(psutil.Process(self.fleet.processes[name].pid).cpu_times()[2:4])
        for name, found in (("postgres", postgres.find_server(self.home)), ("valkey", valkey.find_server(self.home))):
            top = psutil.Process(found.pid) if found else None
            costs[name] = sum(cpu_seconds(p.pid) for p in (top, *top.children())) + sum(top.cpu_times()[2:4]) if top else 0.0
        return costs | {"server": cpu_seconds(site.pid)}


def cpu_seconds(pid: int) -> float:
    """Of this process alone, as long as it lives."""
    with suppress(psutil.Error):
        return sum(psutil.Process(pid).cpu_times()[:2])
    return 0.0


def peak_mb(pid: int) -> float:
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return round(int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1000, 1)
    return 0.0
