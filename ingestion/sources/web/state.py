"""What a crawl keeps on its run between two slices."""

from dataclasses import dataclass, field
from typing import Any

from ingestion.sources.web.requests import Asked


@dataclass(slots=True)
class SiteState:
    """What is known of the site beyond its pages; plain values, kept on the run."""

    requests: int = 0  # for what is no page
    bytes: int = 0
    sitemaps: list[dict[str, Any]] = field(default_factory=list)  # {url, outcome: read | none | unreadable | left_out, pages, problem}
    waiting: list[str] | None = None  # sitemaps that are still to be read; None before robots.txt was
    sitemap_pages: int = 0
    probed: bool = False
    probe: str = ""  # fingerprint of the answer for a made-up address, if it was a page
    same_for_all: bool = False
    rendered_probe: str = ""  # the same of a page that a browser made; "-" where there is none to compare with
    start_seen: bool = False
    ready: bool = False
    warnings: list[str] = field(default_factory=list)

    @property
    def sitemaps_whole(self) -> bool:
        return all(each["outcome"] in ("read", "none") and not each["problem"] for each in self.sitemaps)

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def count(self, asked: Asked) -> None:
        self.requests += asked.requests
        self.bytes += len(asked.answer.body) if asked.answer is not None else 0
