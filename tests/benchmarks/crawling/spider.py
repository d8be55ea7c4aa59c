"""The crawler that ours is measured beside: Scrapy, with our rules for links, in one process.

python tests/benchmarks/crawling/spider.py '{"start": …, "depth": …, "out": …, "seeds": FILE, "share": [0, 2], "reading": "ours"}'

It is given what it would otherwise have to share: of several processes each gets its half of the addresses from the start, and
keeps to it. What it reads goes to a file, a line a page. `reading` is `ours` (our extraction), `cutting` (and the passages that we
make of it) or `trafilatura` (what a Scrapy project usually reads pages with, links by our rules from Scrapy's own tree).
"""

import json
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

ROOT = Path(__file__).resolve().parents[3]
sys.path[0] = str(ROOT)

import trafilatura  # noqa: E402
from scrapy import Request, Spider  # noqa: E402
from scrapy.crawler import CrawlerProcess  # noqa: E402
from scrapy.http import Response  # noqa: E402

from ingestion.crawl.admission import Admission  # noqa: E402
from ingestion.crawl.links import page_links  # noqa: E402
from ingestion.crawl.scope import Scope  # noqa: E402
from ingestion.extract import Limits  # noqa: E402
from ingestion.extract.child import _perform  # noqa: E402
from ingestion.extract.language import load_model  # noqa: E402
from kb.providers.tokens import PACKAGED_MODEL  # noqa: E402

LIMITS = Limits(max_chars=100_000)
CHUNK = {
    "settings": {"strategy": "structure", "target_tokens": 220, "overlap_tokens": 18, "min_chars": 120},
    "tokenizer": PACKAGED_MODEL,
    "reserve": 32,
}
SETTINGS = {
    "USER_AGENT": "Lectern-benchmark",
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "ERROR",
}


class SiteSpider(Spider):
    name = "site"

    def __init__(self, job: dict[str, Any], **values: Any) -> None:
        super().__init__(**values)
        self.job = job
        scope = Scope(
            job["start"], same_site_only=True, include_subdomains=False, path_prefix="/", exclude_patterns=(), include_patterns=()
        )
        self.admission = Admission(scope)
        self.known: set[str] = set()
        self.file = Path(tempfile.gettempdir()) / f"spider-{os.getpid()}.html"
        self.read = self.read_by_trafilatura if job["reading"] == "trafilatura" else self.read_by_ours
        self.chunk = CHUNK if job["reading"] == "cutting" else None

    async def start(self) -> Any:
        seeds = json.loads(Path(self.job["seeds"]).read_text())
        for url, depth in seeds or [(self.job["start"], 0)]:
            for request in self.ask(url, depth):
                yield request

    def ask(self, url: str, depth: int) -> Iterator[Request]:
        """Each address once, by its identity; filtered here, so not again by the scheduler."""
        judged = self.admission.judge(url)
        if judged.reason or judged.key in self.known:
            return
        self.known.add(judged.key)
        mine, of = self.job["share"]
        if crc32(judged.key.encode()) % of == mine:
            yield Request(url, self.parse, dont_filter=True, cb_kwargs={"level": depth})

    def closed(self, reason: str) -> None:
        self.file.unlink(missing_ok=True)

    def parse(self, response: Response, level: int) -> Iterator[Any]:
        item, links = self.read(response)
        yield {"url": response.url, "level": level, **item}
        if level < self.job["depth"]:
            for url, nofollow in links:
                if not nofollow:
                    yield from self.ask(url, level + 1)

    def read_by_trafilatura(self, response: Response) -> tuple[dict[str, Any], list[tuple[str, bool]]]:
        tree = response.selector.root
        found = page_links(tree, url=response.url, agent=SETTINGS["USER_AGENT"])
        markdown = trafilatura.extract(response.text, url=response.url, output_format="markdown", include_links=True, with_metadata=True)
        return {"title": tree.findtext(".//title") or "", "markdown": markdown or ""}, [(link.url, link.nofollow) for link in found.links]

    def read_by_ours(self, response: Response) -> tuple[dict[str, Any], list[tuple[str, bool]]]:
        self.file.write_bytes(response.body)
        request = {
            "op": "extract", "path": str(self.file), "name": response.url, "declared_type": "text/html",
            "page": {"url": response.url, "agent": SETTINGS["USER_AGENT"]}, "chunk": self.chunk,
        }  # fmt: skip
        answer = _perform(request, limits=LIMITS)
        extracted = answer["extracted"]
        links = [(url, nofollow) for url, _text, nofollow in extracted["page"]["links"]]
        return {"title": extracted["title"], "markdown": extracted["markdown"]}, links


def main(job: dict[str, Any]) -> None:
    load_model()
    process = CrawlerProcess({**SETTINGS, "FEEDS": {job["out"]: {"format": "jsonlines", "overwrite": True}}})
    crawler = process.create_crawler(SiteSpider)
    process.crawl(crawler, job=job)
    process.start()
    stats = crawler.stats.get_stats()
    used = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "started": stats["start_time"].timestamp(),
        "ended": stats["finish_time"].timestamp(),
        "pages": stats.get("item_scraped_count", 0),
        "cpu": used.ru_utime + used.ru_stime,
        "rss_mb": used.ru_maxrss / 1000,
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
