"""The robots.txt of the hosts that are met: read once a visit, and by a run kept in rows, so that a resumed crawl obeys the same rules."""

from ingestion import claims
from ingestion.crawl.robots import Robots, robots_of
from ingestion.crawl.urls import origin
from ingestion.models import CrawledHost, IngestionRun
from ingestion.sources.web.requests import ROBOTS_BYTES, Asked, Requests
from kb.schemas.web import Web

MOST_KNOWN = 64


class Hosts:
    """In memory. `get` answers `None` where the host's robots.txt has to be read first; `rows` are what was read, not saved."""

    def __init__(self, run: IngestionRun, *, web: Web, agent: str) -> None:
        self.rows: list[CrawledHost] = []
        self._run = run
        self._agent = agent
        self._delay = web.request_delay_ms / 1000
        self._respect = web.respect_robots
        self._known: dict[str, Robots] = {}

    def get(self, host: str) -> Robots | None:
        return self.known(host)

    def known(self, host: str) -> Robots | None:
        """From memory only, for any thread."""
        return self._known.get(host) if self._respect else Robots("ignored")

    def delay(self, host: str) -> float:
        """The pause between requests to the host: ours, or a longer one of its robots.txt."""
        robots = self._known.get(host)
        return max(self._delay, (robots.crawl_delay or 0.0) if robots else 0.0)

    def read(self, host: str, requests: Requests) -> Asked:
        """Ask for it; from any thread. Raises `Stopped`."""
        return requests.ask_file(f"{host}/robots.txt", max_bytes=ROBOTS_BYTES)

    def remember(self, host: str, asked: Asked) -> Robots:
        """Keep what came of it for the whole visit."""
        answer = asked.answer
        status, body = (answer.status, answer.body) if answer is not None else (None, b"")
        robots = robots_of(status=status, body=body, url=f"{host}/robots.txt", agent=self._agent)
        self._known[host] = robots
        row = CrawledHost(organization_id=self._run.organization_id, run=self._run, origin=host[:300], outcome=robots.outcome)
        row.robots, row.crawl_delay, row.status, row.error = (
            robots.text,
            robots.crawl_delay,
            status,
            asked.failure.message if asked.failure else "",
        )
        self.rows.append(row)
        return robots


class RunHosts(Hosts):
    """Answers from memory, then from the rows of a run. Few are kept in memory: each may have a megabyte of rules."""

    def __init__(self, run: IngestionRun, *, web: Web, agent: str) -> None:
        super().__init__(run, web=web, agent=agent)
        self._used: dict[str, None] = {}

    def get(self, host: str) -> Robots | None:
        if self._respect and host not in self._known and (row := CrawledHost.objects.filter(run=self._run, origin=host[:300]).first()):
            self._known[host] = robots_of_row(row, agent=self._agent)
        self._forget_others(host)
        return super().get(host)

    def remember(self, host: str, asked: Asked) -> Robots:
        robots = super().remember(host, asked)
        with claims.writing(self._run):
            CrawledHost.objects.bulk_create(self.rows, ignore_conflicts=True)
        self.rows.clear()
        self._forget_others(host)
        return robots

    def _forget_others(self, host: str) -> None:
        """Those that were used longest ago; more are kept than may be asked at a time. Other threads read what is known meanwhile."""
        self._used.pop(host, None)
        self._used[host] = None
        while len(self._used) > MOST_KNOWN:
            other = next(iter(self._used))
            del self._used[other]
            self._known.pop(other, None)


def robots_of_row(row: CrawledHost, *, agent: str) -> Robots:
    """The rules that a run read."""
    return Robots(row.outcome, row.robots, agent, f"{row.origin}/robots.txt")


def refusal(robots: Robots, url: str) -> tuple[str, str] | None:
    """(reason, sentence) if the host's robots.txt keeps us from asking."""
    if robots.outcome == "unavailable":
        return "robots_unavailable", f"{origin(url)}/robots.txt cannot be read now, so nothing is asked of this host in this run."
    if not robots.allows(url):
        return "robots", f"{origin(url)}/robots.txt disallows it."
    return None
