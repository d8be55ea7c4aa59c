"""Pages per second of the crawl, until they are read and cut, beside Scrapy with the same rules for links and the same extraction.

python tests/benchmarks/crawl.py [DIR] [--parts ratio,queue,scale,freshness] [--rounds N]

DIR is a folder of HTML that starts at index.html; without one a site is made by code, which says less than a real one. Nothing is
asked of any network. Lines of JSON: one for one worker beside one Scrapy process, one for two beside two that share the site, then
memory with 50,000 addresses queued, time a page at 1,000 and 20,000 pages, and seconds from a change of a page to finding it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)

from tests.benchmarks.crawling.fleet import Crawled, Crawls  # noqa: E402
from tests.benchmarks.crawling.sites import write_manual, write_queue  # noqa: E402
from tests.client import Client  # noqa: E402
from tests.fleet import ROLES, wait_for  # noqa: E402
from tests.installation import installation  # noqa: E402
from tests.servers.folder import Served, served  # noqa: E402

PARTS = ("ratio", "queue", "scale", "freshness")
SPIDER = ROOT / "tests" / "benchmarks" / "crawling" / "spider.py"
QUEUED = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="of ours and Scrapy's in turn; the middle one counts (default 3)")
    parser.add_argument("--depth", type=int, default=2, help="links from the start that are followed (default 2)")
    parser.add_argument("--processes", type=int, choices=(1, 2), help="only one beside one, or two beside two")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"There is no part {', '.join(sorted(unknown))}. There are {', '.join(PARTS)}.")
    with tempfile.TemporaryDirectory(prefix="lectern-crawl-") as scratch, installation() as installed:
        crawls = Crawls(installed)
        folder = options.folder or manual(Path(scratch), 1000)
        if options.folder is None:
            say("No DIR was given, so the site is made by code. A folder of real pages says more.")
        if "ratio" in parts:
            for processes in (options.processes,) if options.processes else (1, 2):
                tell(ratio(crawls, folder, Path(scratch), processes=processes, rounds=options.rounds, depth=options.depth))
        crawls.use(2)
        if "queue" in parts:
            tell(queue(crawls, Path(scratch)))
        if "scale" in parts:
            tell(scale(crawls, Path(scratch)))
        if "freshness" in parts:
            tell(freshness(crawls, installed.client, Path(scratch)))


def tell(figures: dict[str, Any]) -> None:
    print(json.dumps({"bench": "crawl", **figures}), flush=True)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def manual(scratch: Path, pages: int) -> Path:
    folder = scratch / f"manual-{pages}"
    folder.mkdir()
    write_manual(folder, pages)
    return folder


# --- beside Scrapy ------------------------------------------------------------------------------------------------------


def ratio(crawls: Crawls, folder: Path, scratch: Path, *, processes: int, rounds: int, depth: int) -> dict[str, Any]:
    """The same site by both in turn. Scrapy with our extraction, then cutting as ours does, then with trafilatura."""
    crawls.use(processes)
    rates: dict[str, list[float]] = {"ours": [], "scrapy": [], "cutting": [], "trafilatura": []}
    with served(folder) as site:
        with served(manual_once(scratch)) as warm_up:
            crawls.crawl(warm_up, depth=2)  # the children that read pages are up
        seeds = spread(site, scratch, depth=depth) if processes > 1 else []
        for _ in range(rounds):
            ours = crawls.crawl(site, depth=depth)
            plain = scrapy(site, scratch, seeds, processes=processes, depth=depth, reading="ours")
            cutting = scrapy(site, scratch, seeds, processes=processes, depth=depth, reading="cutting")
            usual = scrapy(site, scratch, seeds, processes=processes, depth=depth, reading="trafilatura")
            for name, crawled in (("ours", ours), ("scrapy", plain), ("cutting", cutting), ("trafilatura", usual)):
                rates[name].append(crawled.pages_per_s)
                say(f"{name}, {processes}: {crawled.pages} pages, {crawled.pages_per_s:.1f}/s, ms of CPU {crawled.cpu_ms_per_page()}")
    return {
        "pages": ours.pages,
        "processes": processes,
        "pages_per_s": middle(rates["ours"]),
        "scrapy_pages_per_s": middle(rates["scrapy"]),
        "ratio": middle([a / b for a, b in zip(rates["ours"], rates["scrapy"], strict=True)], digits=2),
        "scrapy_cutting_pages_per_s": middle(rates["cutting"]),
        "ratio_cutting": middle([a / b for a, b in zip(rates["ours"], rates["cutting"], strict=True)], digits=2),
        "scrapy_trafilatura_pages_per_s": middle(rates["trafilatura"]),
        "ratio_trafilatura": middle([a / b for a, b in zip(rates["ours"], rates["trafilatura"], strict=True)], digits=2),
        "peak_rss_mb": max(ours.rss_mb.values()),
        "rss_mb": ours.rss_mb,
        "cpu_ms_per_page": ours.cpu_ms_per_page(),
        "scrapy_cpu_ms_per_page": plain.cpu_ms_per_page()["all"],
        "scrapy_cutting_cpu_ms_per_page": cutting.cpu_ms_per_page()["all"],
        "scrapy_trafilatura_cpu_ms_per_page": usual.cpu_ms_per_page()["all"],
        "scrapy_pages": plain.pages,
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def middle(values: list[float], *, digits: int = 1) -> float:
    return round(statistics.median(values), digits)


def manual_once(scratch: Path) -> Path:
    folder = scratch / "manual-60"
    return folder if folder.exists() else manual(scratch, 60)


def scrapy(site: Served, scratch: Path, seeds: list[Any], *, processes: int, depth: int, reading: str) -> Crawled:
    """From the first spider's start to the last one's end; imports and models are loaded before."""
    listed = scratch / "seeds.json"
    listed.write_text(json.dumps(seeds))
    job = {"start": site.url, "depth": depth, "seeds": str(listed), "reading": reading}
    spiders = []
    for number in range(processes):
        own = job | {"share": [number, processes], "out": str(scratch / f"scrapy-{number}.jsonl")}
        spiders.append(subprocess.Popen([sys.executable, str(SPIDER), json.dumps(own)], stdout=subprocess.PIPE, text=True))
    told = [json.loads(spider.communicate()[0]) for spider in spiders]
    seconds = max(each["ended"] for each in told) - min(each["started"] for each in told)
    cpu = {f"spider {number}": each["cpu"] for number, each in enumerate(told)}
    return Crawled(sum(each["pages"] for each in told), seconds, cpu, {"spider": max(each["rss_mb"] for each in told)})


def spread(site: Served, scratch: Path, *, depth: int) -> list[Any]:
    """Every address with its depth, for spiders that share the site: each then need not be told what the others find."""
    scrapy(site, scratch, [], processes=1, depth=depth, reading="ours")
    with open(scratch / "scrapy-0.jsonl") as lines:
        return [[page["url"], page["level"]] for page in map(json.loads, lines)]


# --- memory, scale, freshness -------------------------------------------------------------------------------------------


def queue(crawls: Crawls, scratch: Path) -> dict[str, Any]:
    """The largest memory of each process while so many addresses wait."""
    folder = scratch / "queue"
    folder.mkdir()
    write_queue(folder, QUEUED + 5000)
    crawls.use(2)
    waiting = "SELECT count(*) FROM ingestion_runitem WHERE run_id = %s AND stage = 'found' AND depth = 2"
    with served(folder) as site:
        run = crawls.begin(site, depth=3)
        most = 0

        def is_seen() -> bool:
            nonlocal most
            now = crawls.database.execute(waiting, [run]).fetchone()[0]  # type: ignore[index]
            most = max(most, now)
            return most >= QUEUED and now < most - 1000

        wait_for(is_seen, seconds=900, what=f"{QUEUED:,} addresses in the queue", every=1)
        rss = crawls.rss_mb()
        crawls.client.call("POST", f"/runs/{run}/cancel")
    return {"part": "queue", "queued": most, "peak_rss_mb": max(rss.values()), "rss_mb": rss}


def scale(crawls: Crawls, scratch: Path) -> dict[str, Any]:
    """What a page costs of a small and of a large site, by the clock and by the processors."""
    took, cost = {}, {}
    for pages in (1000, 20_000):
        folder = scratch / f"manual-{pages}"
        with served(folder if folder.exists() else manual(scratch, pages)) as site:
            crawled = crawls.crawl(site, depth=4)
        took[pages], cost[pages] = 1000 / crawled.pages_per_s, crawled.cpu_ms_per_page()["all"]
        say(f"{crawled.pages} pages, {crawled.pages_per_s:.1f}/s, ms of CPU {crawled.cpu_ms_per_page()}")
    return {
        "part": "scale",
        "pages": crawled.pages,
        "ms_per_page": {str(pages): round(each, 2) for pages, each in took.items()},
        "cpu_ms_per_page": {str(pages): each for pages, each in cost.items()},
        "growth": round(took[20_000] / took[1000], 2),
        "cpu_growth": round(cost[20_000] / cost[1000], 2),
    }


def freshness(crawls: Crawls, client: Client, scratch: Path) -> dict[str, Any]:
    """Seconds from a change of a page until a search finds it: with a run asked for at once, and with a schedule of every minute."""
    folder = scratch / "fresh"
    folder.mkdir()
    write_manual(folder, 300)
    crawls.fleet.roles = ROLES
    crawls.fleet.start()
    crawls.fleet.wait_ready()
    page = folder / "c3-4.html"
    before = page.read_text()

    def found_after(word: str, run_now: bool) -> float:
        page.write_text(before.replace("</h1>", f"</h1><p>The word of this change is {word}.</p>"))
        changed = time.monotonic()
        if run_now:
            client.start(knowledge_base, source)
        options = {"mode": "keyword", "min_score": 0}
        wait_for(
            lambda: any(word in text for text in client.texts(knowledge_base, word, **options)), seconds=300, what="the change", every=0.5
        )
        return time.monotonic() - changed

    with served(folder) as site:
        web = {"start_url": site.url, "max_depth": 3, "max_pages": 1000, "request_delay_ms": 0}
        knowledge_base, source = client.create_knowledge_base("fresh", sources=[{"name": "web", "web": web}])
        client.ingest(knowledge_base, source, seconds=900)
        again, rerun = client.timed_ingest(knowledge_base, source)
        now = found_after("quokkaberry", True)
        wait_for(
            lambda: client.call("GET", f"/knowledge-bases/{knowledge_base}/sources/{source}/runs")["items"][0]["finished_at"],
            seconds=60,
            what="the run",
        )
        document = client.call("GET", f"/knowledge-bases/{knowledge_base}")
        body = document["document"]
        body["sources"][0]["cron"] = "* * * * *"
        client.call("PUT", f"/knowledge-bases/{knowledge_base}?version={document['version']}", json=body)
        scheduled = found_after("wombatcherry", False)
    return {
        "part": "freshness",
        "pages": 300,
        "run_now_s": round(now, 1),
        "scheduled_every_minute_s": round(scheduled, 1),
        "rerun_s": round(again, 1),
        "rerun_unchanged": rerun["counters"]["unchanged"],
        "rerun_embeddings": rerun["counters"]["embeddings_computed"],
    }


if __name__ == "__main__":
    main()
