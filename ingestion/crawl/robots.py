"""robots.txt by RFC 9309: what may be requested, how slowly, and which sitemaps it names.

protego decides whether a rule matches a path. Groups are read here, because protego takes a product token for a part of the agent's name
(rules for `Foo` would hold for `Foobar`, and `Foo Bar` for nobody) and lets an unknown line end a group, against section 2.2.4."""

import codecs
import re
from dataclasses import dataclass, field
from functools import lru_cache

from protego import Protego

from ingestion.crawl.urls import UrlRefused, absolute, spell

MOST_BYTES = 1024 * 1024
MOST_RULES = 2_000
MOST_SITEMAPS = 100
LONGEST_DELAY = 300.0

# With the spelling mistakes that are made often enough for every reader of robots.txt to know them, and the colon that is left out.
_LINE = re.compile(
    r"(user[ -]?agents?|diss?all?ow|diasllow|disallaw|allow|crawl[ -]?delay|site-?maps?)[ \t]*(?::|[ \t])[ \t]*(.*)", re.IGNORECASE
)
_END_OF_LINE = re.compile(r"\r\n|\r|\n")
_TOKEN = re.compile(r"[^\s/]+")
_DELAY = re.compile(r"\d{1,9}(?:\.\d*)?|\.\d+")
_ESCAPED_LETTER = re.compile(r"%(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])")
_ANYBODY = "*"


@dataclass(frozen=True, slots=True)
class Robots:
    """`outcome`: `read`; `none` (there is no robots.txt: all is allowed); `unavailable` (nothing is allowed in this run, and nothing
    may be concluded from it); `ignored` (the operator said so). `text` and `url` are enough to build it again in another process."""

    outcome: str
    text: str = ""
    agent: str = ""
    url: str = ""

    def allows(self, url: str) -> bool:
        """For an address made by `absolute`."""
        if self.outcome != "read":
            return self.outcome != "unavailable"
        return _read(self.text, self.agent).rules.can_fetch(url, _ANYBODY)

    @property
    def crawl_delay(self) -> float | None:
        """Seconds; a delay above five minutes is a mistake or a refusal in disguise, and is ignored."""
        return _read(self.text, self.agent).delay if self.outcome == "read" else None

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """Absolute, in the order of the file, whichever group they stand in."""
        if self.outcome != "read":
            return ()
        found: dict[str, None] = {}
        for address in _read(self.text, self.agent).sitemaps:
            try:
                found[absolute(address, base=self.url)] = None
            except UrlRefused:
                continue
        return tuple(found)


def robots_of(*, status: int | None, body: bytes, url: str, agent: str) -> Robots:
    """What an answer for robots.txt means; `status` None is a failure of the transport. Redirects were followed by the caller: one that
    is left led nowhere, which RFC 9309 lets count as a file that is not there."""
    if status is None or status == 429 or status >= 500:
        return Robots("unavailable", agent=agent, url=url)
    if not 200 <= status < 300:
        return Robots("none", agent=agent, url=url)
    return Robots("read", text=_decode(body), agent=agent, url=url)


def product_token(agent: str) -> str:
    """`Lectern` of `Lectern/1.0 (+https://lectern.example)`."""
    match = _TOKEN.match(agent.strip())
    return match[0] if match else ""


@dataclass(frozen=True, slots=True)
class _Read:
    rules: Protego
    delay: float | None
    sitemaps: tuple[str, ...]


@dataclass(slots=True)
class _Group:
    """What all groups for one token say together."""

    named: bool = False
    rules: list[str] = field(default_factory=list)
    delay: float | None = None


@lru_cache(maxsize=32)
def _read(text: str, agent: str) -> _Read:
    ours, anybody = _Group(), _Group()
    groups = {_ANYBODY: anybody, product_token(agent).lower(): ours}
    sitemaps: list[str] = []
    current: list[_Group] = []
    in_head = False
    for line in _END_OF_LINE.split(text):
        match = _LINE.match(line.partition("#")[0].strip())
        if match is None:
            continue
        kind, value = match[1][0].lower(), match[2].strip()
        if kind == "u":
            current = current if in_head else []
            in_head = True
            if (group := groups.get(_named(value))) is not None:
                group.named = True
                current.append(group)
        elif kind == "s":
            if value and len(sitemaps) < MOST_SITEMAPS:
                sitemaps.append(value)
        elif kind == "c":
            for group in current:
                group.delay = _delay(value) or group.delay
        else:
            in_head = False
            for group in current:
                _add(group, kind == "a", value)
    group = ours if ours.named else anybody
    return _Read(Protego.parse("\n".join(["User-agent: *", *group.rules])), group.delay, tuple(sitemaps))


def _named(value: str) -> str:
    token = product_token(value).lower()
    return token if token == _ANYBODY else token.rstrip(_ANYBODY)


def _add(group: _Group, allow: bool, path: str) -> None:
    if not path or len(group.rules) >= MOST_RULES:
        return
    # Readers disagree about letters written as escapes: RFC 9309 decodes them, the parser of Google does not. Nothing is allowed by a
    # rule that not everybody reads alike; what it forbids stays forbidden.
    if allow and _ESCAPED_LETTER.search(path):
        return
    group.rules.append(f"{'Allow' if allow else 'Disallow'}: {spell(path)}")


def _delay(value: str) -> float | None:
    if not _DELAY.fullmatch(value):
        return None
    seconds = float(value)
    return seconds if 0 < seconds <= LONGEST_DELAY else None


def _decode(body: bytes) -> str:
    cut = len(body) > MOST_BYTES
    body = body[:MOST_BYTES]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = body.decode("utf-16", "replace")
    else:
        text = body.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    if cut:
        # Half a rule would be another rule.
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    return text.replace("\0", "\ufffd")
