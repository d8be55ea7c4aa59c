"""Addresses of pages: what is requested, and what a page is known by.

A page is requested by its address as published (`absolute`) and known by its identity, so that spelling variants of one address are
one document. Parsing and joining follow the WHATWG rules, as browsers do."""

import re
from functools import lru_cache

from ada_url import join_url

LONGEST_URL = 8192

_SCHEME = re.compile(r"[\s\x00-\x1f]*([A-Za-z][A-Za-z0-9+.-]*):")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_ILLEGAL = re.compile(r"[^!$%&'()*+,\-./0-9:;=?@A-Z_a-z~]")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_INDEX_PAGES = frozenset({"index.html", "index.htm", "index.php", "default.html"})
_TRACKERS = frozenset(
    {
        "utm_source",
        "utm_medium",
        "utm_campaign",
        "utm_term",
        "utm_content",
        "utm_id",
        "gclid",
        "fbclid",
        "msclkid",
        "mc_cid",
        "mc_eid",
        "_ga",
    }
)
# A session id is another one in each run: kept in the identity, every run would delete each page and ingest it anew.
_SESSION_NAMES = re.compile(r"phpsessid|jsessionid|aspsessionid[a-z]*|asp\.net_sessionid|cftoken|oscsid|zenid", re.IGNORECASE)
# These names also stand for sections and stations; only with the value of a session they are one.
_SESSION_LIKE_NAMES = frozenset({"sid", "session", "sessionid", "session_id", "sess"})
_SESSION_VALUE = re.compile(r"(?=[^0-9]*[0-9])[0-9A-Za-z_-]{20,}")
_SESSION_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/;]*", re.IGNORECASE)

# Menus repeat the same addresses on each page. Long ones are not kept, so the cache stays within a few megabytes.
_CACHED = 8192
_CACHED_LENGTH = 512


class UrlRefused(ValueError):
    """Not an address that a crawl can request; `reason` is the code of the verdict: `bad_url` or `url_too_long`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def absolute(href: str, *, base: str) -> str:
    """The address to request for a link on the page `base`: joined, percent-encoded, without fragment, http(s) only."""
    scheme = _SCHEME.match(href)
    if scheme and scheme[1].lower() not in ("http", "https"):
        raise UrlRefused("bad_url", f"{scheme[1][:20]}: addresses are not crawled.")
    if len(href) > 2 * LONGEST_URL:
        raise _too_long(len(href))
    try:
        url = join_url(base, href)
    except ValueError as error:
        raise UrlRefused("bad_url", f"{href[:200]!r} is not an address.") from error
    if not url.startswith(("https://", "http://")):
        raise UrlRefused("bad_url", f"{href[:200]!r} is neither http nor https.")
    url = url.partition("#")[0]
    if "%" in url:
        url = _LONE_PERCENT.sub("%25", url)
    # Its identity escapes more, and is stored too.
    if len(url) > LONGEST_URL // 3 and (length := max(len(url), len(spell(url)))) > LONGEST_URL:
        raise _too_long(length)
    if "@" in url and "@" in authority_of(url):
        raise UrlRefused("bad_url", "The address holds a user name or password, which would be stored and logged in clear.")
    return url


def identity(url: str) -> str:
    """What the page at this address is known by; an address that `absolute` refuses is refused here too.

    Without fragment, default port, index file name, trailing slash, trackers and session ids; query sorted by name; one spelling for
    percent-encoded characters (RFC 3986, 6.2.2). The case of the path stays, and so do `ref`, http or https, and `www.`."""
    return _cached_identity(url) if len(url) <= _CACHED_LENGTH else _identity(url)


@lru_cache(maxsize=1024)
def origin(url: str) -> str:
    """`https://host:port`, a default port left out."""
    return "/".join(absolute(url, base=url).split("/", 3)[:3])


def authority_of(url: str) -> str:
    """Host and port of an address made by `absolute`."""
    return re.split(r"[/?]", url.partition("://")[2], maxsplit=1)[0]


def path_of(url: str) -> str:
    """Path of an address made by `absolute`, in the one spelling that identities have."""
    rest = url.partition("://")[2].partition("?")[0]
    return spell("/" + rest.partition("/")[2])


def spell(text: str) -> str:
    """One spelling of a path or query: unreserved characters plain, all that RFC 3986 does not allow encoded, escapes upper-case."""
    if "%" in text:
        text = _ESCAPE.sub(_unescape, _LONE_PERCENT.sub("%25", text))
    return _ILLEGAL.sub(_escape, text)


def _identity(url: str) -> str:
    url = absolute(url, base=url)
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    host, _, path = rest.partition("/")
    path = spell(path)
    if ";" in path and (without := _SESSION_IN_PATH.sub("", path)) != path:
        # Joined again: what is left of a segment may be dots.
        return _identity(f"{scheme}://{host}/{without}?{query}")
    known = f"{scheme}://{host}/{_without_index(path)}"
    if query and (kept := _kept_parameters(spell(query))):
        return f"{known}?{kept}"
    return known


_cached_identity = lru_cache(maxsize=_CACHED)(_identity)


def _without_index(path: str) -> str:
    while True:
        path = path.rstrip("/")
        folder, _, name = path.rpartition("/")
        if name not in _INDEX_PAGES:
            return path
        path = folder


def _kept_parameters(query: str) -> str:
    kept = [part for part in query.split("&") if part and not _says_nothing(part)]
    # Sorted by name only: repeated parameters are a list, and its order may mean something.
    kept.sort(key=lambda part: part.partition("=")[0])
    return "&".join(kept)


def _says_nothing(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    if name in _TRACKERS or _SESSION_NAMES.fullmatch(name):
        return True
    return name.lower() in _SESSION_LIKE_NAMES and _SESSION_VALUE.fullmatch(value) is not None


def _unescape(match: re.Match[str]) -> str:
    character = chr(int(match[0][1:], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace"))


def _too_long(length: int) -> UrlRefused:
    return UrlRefused("url_too_long", f"The address is {length:,} characters long; at most {LONGEST_URL:,} are crawled.")
