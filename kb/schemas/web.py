"""What a web source crawls."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from kb.schemas.addresses import check_url
from kb.schemas.base import Document, Text, json_limits, rules_of

_MOST_WILDCARDS = 16  # per pattern: more make matching slow and say nothing


def normalise_prefix(prefix: str) -> str:
    prefix = prefix.strip()
    if any(character in prefix for character in "?#\\") or any(character.isspace() for character in prefix):
        raise ValueError("must be a path: no ?, #, backslash or space.")
    segments = [segment for segment in prefix.split("/") if segment]
    if any(segment in (".", "..") for segment in segments):
        raise ValueError("must be a plain path, without . or .. segments.")
    return f"/{'/'.join(segments)}/" if segments else "/"


def check_glob(pattern: str) -> str:
    pattern = pattern.strip()
    if not pattern:
        raise ValueError("is empty. Remove it, or write a pattern such as /archive/**.")
    if "://" in pattern or any(character.isspace() for character in pattern):
        raise ValueError(f"'{pattern}' is matched against the path of a URL: write it like /archive/**, without scheme, host or spaces.")
    if len(re.findall(r"\*+", pattern)) > _MOST_WILDCARDS:
        raise ValueError(f"'{pattern}' has more than {_MOST_WILDCARDS} wildcards. Split it.")
    if "***" in pattern:
        raise ValueError(f"'{pattern}' has three stars: * matches inside a segment, ** across segments.")
    return pattern


Glob = Annotated[Text, Field(max_length=1000), AfterValidator(check_glob)]


class Web(Document):
    """Which pages a crawl reads, and how politely."""

    start_url: Text = Field(
        description="Where the crawl starts: http or https, with a host, without credentials, ≤ 8,192 characters. A literal private or "
        "loopback address is refused at save; host names are checked on every request.",
        **json_limits(format="uri", maxLength=8192),
    )
    same_site_only: bool = Field(default=True, description="Stay on the site of the start (`www.` and the bare host are one site).")
    include_subdomains: bool = Field(default=False, description="Subdomains count as the same site.")
    path_prefix: Annotated[Text, Field(max_length=2000), AfterValidator(normalise_prefix)] = Field(
        default="/",
        description="Only pages under this path are ingested, and the start. Slashes around it are added; `/docs/` also matches `/docs`.",
    )
    max_depth: int = Field(default=3, ge=1, le=20, description="Links from the start.")
    max_pages: int = Field(default=200, ge=1, le=50_000, description="Pages ingested per run.")
    exclude_patterns: list[Glob] = Field(
        default_factory=list,
        max_length=1000,
        description="Globs on the path of a URL: `*` inside a segment, `**` across segments. One that begins with a slash starts at the "
        "root; any other starts at any folder, so `*.pdf` is every PDF. `/archive/**` is also `/archive` itself.",
    )
    include_patterns: list[Glob] = Field(
        default_factory=list,
        max_length=1000,
        description="Globs like `exclude_patterns`. If there are any, only pages that match one of them are read, and the start. "
        "What `exclude_patterns` names stays out.",
    )
    sitemap_urls: list[Text] = Field(
        default_factory=list, max_length=20, description="More sitemaps, at most 20; the rules of `start_url` hold for each."
    )
    request_delay_ms: int = Field(default=500, ge=0, le=60_000, description="Pause between requests to a host; a longer robots delay wins.")
    timeout_seconds: int = Field(default=15, ge=1, le=300, description="Wait for the headers of an answer; its body gets four times that.")
    user_agent: Annotated[Text, Field(min_length=1, max_length=400)] | None = Field(
        default=None,
        description="Sent with each request, its first word matched against robots groups. Default: `Lectern/<version> (+<site url>)`.",
    )
    respect_robots: bool = Field(default=True, description="Obey robots.txt: rules, delay and sitemaps.")
    include_linked_files: bool = Field(default=True, description="Ingest PDF and Office files that pages link to.")
    render: Literal["never", "auto"] = Field(
        default="never",
        description="`auto`: a page that holds no text without its scripts is made by a browser, where the crawl's workers have one.",
    )

    @field_validator("start_url")
    @classmethod
    def _start_url(cls, url: str, info: ValidationInfo) -> str:
        return check_url(url, rules=rules_of(info))

    @field_validator("sitemap_urls")
    @classmethod
    def _sitemap_urls(cls, urls: list[str], info: ValidationInfo) -> list[str]:
        checked = []
        for number, url in enumerate(urls, start=1):
            try:
                checked.append(check_url(url, rules=rules_of(info)))
            except ValueError as error:
                raise ValueError(f"number {number} {error}") from error
        return checked

    @field_validator("user_agent")
    @classmethod
    def _user_agent(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = value.strip()
        if not value or not all(" " <= character <= "~" for character in value):
            raise ValueError("is sent as an HTTP header: write printable ASCII on one line, such as 'AcmeBot/1.0 (+https://acme.example)'.")
        return value
