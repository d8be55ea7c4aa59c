"""Which addresses belong to a web source."""

from dataclasses import dataclass, field

from ingestion.crawl.globs import Globs
from ingestion.crawl.urls import UrlRefused, absolute, authority_of, identity, path_of

_DEFAULT_PORT = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True)
class Scope:
    """The start itself is always inside: links come from it, also where it lies above the path prefix."""

    start_url: str
    same_site_only: bool = True
    include_subdomains: bool = False
    path_prefix: str = "/"
    exclude_patterns: tuple[str, ...] = ()
    include_patterns: tuple[str, ...] = ()
    _host: str = field(init=False, repr=False, compare=False)
    _port: str = field(init=False, repr=False, compare=False)
    _start: str = field(init=False, repr=False, compare=False)
    _prefix: str = field(init=False, repr=False, compare=False)
    _excluded: Globs = field(init=False, repr=False, compare=False)
    _included: Globs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        start = absolute(self.start_url, base=self.start_url)
        host, port = _site(start)
        folders = self.path_prefix.strip("/")
        prefix = path_of(absolute(f"/{folders}/", base=start)) if folders else "/"
        for name, value in {
            "_host": host,
            "_port": port,
            "_start": _page(start),
            "_prefix": prefix,
            "_excluded": Globs(tuple(self.exclude_patterns)),
            "_included": Globs(tuple(self.include_patterns)),
        }.items():
            object.__setattr__(self, name, value)

    def refusal(self, url: str) -> tuple[str, str] | None:
        """Code and sentence of why an address made by `absolute` is outside; None when it is inside. Never raises."""
        if self.same_site_only and not self._same_site(url):
            return "out_of_scope", f"{authority_of(url)[:200]} is not the site of the start, {self._host}."
        path = path_of(url)
        if pattern := self._excluded.match(path):
            return "excluded", f"The path matches the exclude pattern {pattern}."
        if self._is_start(url):
            return None
        if not f"{path}/".startswith(self._prefix):
            return "out_of_scope", f"The path is not under {self.path_prefix}."
        if self.include_patterns and self._included.match(path) is None:
            return "out_of_scope", "The path matches none of the include patterns."
        return None

    def _same_site(self, url: str) -> bool:
        host, port = _site(url)
        if port != self._port:
            return False
        return host == self._host or (self.include_subdomains and host.endswith(f".{self._host}"))

    def _is_start(self, url: str) -> bool:
        try:
            return _page(url) == self._start
        except UrlRefused:
            return False


def _site(url: str) -> tuple[str, str]:
    """Host without `www.`, and port; the default ports of http and https are one, because a site moves from one to the other."""
    authority = authority_of(url)
    host, _, port = authority.rpartition(":") if not authority.endswith("]") and ":" in authority else (authority, "", "")
    bare = host.removeprefix("www.")
    return bare if "." in bare else host, "" if port == _DEFAULT_PORT.get(url.partition("://")[0]) else port


def _page(url: str) -> str:
    """The address without the ways in which a site redirects its start to itself: https and `www.`."""
    return identity(url).partition("://")[2].removeprefix("www.")
