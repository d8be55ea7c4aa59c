"""Whether a link becomes a page to fetch, and if not, why. Pure; remembers what it decided, because sites repeat their links."""

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from urllib.parse import urlsplit

from ingestion.crawl.scope import Scope
from ingestion.crawl.traps import Seen, why_trap
from ingestion.crawl.urls import UrlRefused, identity

REMEMBERED = 50_000
REMEMBERED_LENGTH = 512  # longer addresses are judged anew each time: kept, they would take a gigabyte
# Links that end like this lead to no document; asking for them would only cost the site its bandwidth.
_NO_DOCUMENT = re.compile(
    r"\.(?:jpe?g|png|gif|webp|avif|svg|ico|bmp|tiff?|css|js|mjs|map|woff2?|ttf|otf|eot|mp3|mp4|m4a|m4v|mov|avi|mkv|webm|ogg|oga|ogv|wav|flac"
    r"|zip|gz|tgz|bz2|xz|zst|7z|rar|tar|exe|msi|dmg|pkg|deb|rpm|apk|iso|img|bin|jar|war|whl|so|dll|class|pyc|wasm|swf)\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """`key` is what the address is known by; without a `reason` it is fetched."""

    key: str
    reason: str = ""
    text: str = ""


class Admission:
    """The rules of one source for the addresses that its pages, sitemaps and redirects name."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._seen = Seen()  # of this process: each counts for itself, so a trap costs some pages more on several workers
        self._traps: dict[bytes, str] = {}  # of long addresses, which count once too
        self._known = lru_cache(maxsize=REMEMBERED)(self._judge)

    def judge(self, url: str) -> Judged:
        return self._known(url) if len(url) <= REMEMBERED_LENGTH else self._judge(url)

    def _judge(self, url: str) -> Judged:
        try:
            key = identity(url)
        except UrlRefused as error:
            return Judged(url[:8192], error.reason, str(error))
        if refused := self._scope.refusal(url):
            return Judged(key, *refused)
        if _NO_DOCUMENT.search(urlsplit(key).path):
            return Judged(key, "not_a_document", "Its name ends like that of a file which is no document.")
        if trap := self._why_trap(key) if len(url) > REMEMBERED_LENGTH else why_trap(key, seen=self._seen):
            return Judged(key, "trap", trap)
        return Judged(key)

    def _why_trap(self, key: str) -> str:
        digest = blake2b(key.encode(), digest_size=16).digest()
        if digest not in self._traps:
            if len(self._traps) >= REMEMBERED:
                self._traps.clear()
            self._traps[digest] = why_trap(key, seen=self._seen)
        return self._traps[digest]
