"""Pages that only a browser fills: the shells of JavaScript programs, and challenges that stand in front of a page."""

import re
from dataclasses import dataclass

from lxml import etree

from ingestion.extract.html_tree import Element, raw_text, text_of

# A page with this much text of its own is a page, whatever its scripts do.
SHELL_WORDS, CHALLENGE_WORDS, BUNDLE_WORDS = 30, 120, 10
SHELL_LINKS, BUNDLE_LINKS = 5, 2
LOADING_WORDS = 6
CODE_CHARS = 20_000
CJK_CHARS_PER_WORD = 2

_ROOT_IDS = frozenset(
    [
        "root",
        "app",
        "__next",
        "__nuxt",
        "___gatsby",
        "app-root",
        "react-root",
        "app-mount",
        "main-app",
        "svelte",
        "q-app",
        "ember-application",
        "application",
    ]
)
_ROOT_MARKS = ("data-reactroot", "ng-app", "data-ng-app", "ng-version", "data-server-rendered", "data-v-app")
_BUNDLE = re.compile(
    r"(?:^|/)(?:main|app|bundle|index|runtime|vendors?|chunk|polyfills?|webpack)\b[\w.~-]*\.m?js|/_next/static/|/_nuxt/|/static/js/",
    re.IGNORECASE,
)
_PLEA = re.compile(
    r"java\s?script.{0,80}?(?:enable|require|needed|necessary|disabled|turn|activ|aktiv|habilit|включ|启用|啟用|有効)"
    r"|(?:enable|requires?|needs?|without|turn on|activ\w+|aktivier\w+|habilit\w+|включит\w+|启用|啟用|有効).{0,80}?java\s?script",
    re.IGNORECASE | re.DOTALL,
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_CHALLENGE_TITLE = re.compile(
    r"^\s*(?:just a moment|attention required|checking your browser|one moment, please|making sure you.?re not a bot|ddos-guard|"
    r"security check|verifying you are human|access denied|pardon our interruption)",
    re.IGNORECASE,
)
_CHALLENGE_CODE = re.compile(
    r"_cf_chl_opt|_Incapsula_Resource|awsWafCookieDomainList|gokuProps|captcha-delivery\.com|sucuri_cloudproxy_js|px-captcha|"
    r"/\.within\.website/|/TSPD/|ddos-guard/js-challenge|sec-cpt-if"
)
_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class ShellMarks:
    """Seen in the whole tree, before scripts and hidden elements are dropped."""

    scripts: int
    bundles: bool
    challenge: bool
    plea: bool


def shell_marks(tree: Element) -> ShellMarks:
    scripts = [script for script in tree.iter("script") if "json" not in (script.get("type") or "")]
    sources = [script.get("src") or "" for script in scripts]
    code = [script.text or "" for script in scripts]
    return ShellMarks(
        scripts=len(scripts),
        bundles=any(map(_BUNDLE.search, sources))
        or sum(map(len, code)) > CODE_CHARS
        or any(script.get("type") == "module" for script in scripts),
        challenge=bool(_CHALLENGE_TITLE.match(tree.findtext(".//title") or ""))
        or any(_CHALLENGE_CODE.search(text) for text in (*code, *sources)),
        plea=any(_PLEA.search(raw_text(element)) for element in tree.iter("noscript")),
    )


def needs_javascript(marks: ShellMarks, tree: Element) -> bool:
    """`tree` is without hidden elements. Rather no than yes: a short page is a page."""
    body = tree.find("body")
    if body is None or not marks.scripts:
        return False
    text = _text(body)
    words = count_words(text)
    if marks.challenge and words < CHALLENGE_WORDS:
        return True
    if words >= 2 * SHELL_WORDS:
        return False
    told = [sentence for sentence in _SENTENCE.split(text) if not _PLEA.search(sentence)]
    own = sum(map(count_words, told))
    links = sum(1 for _ in body.iter("a"))
    if own >= SHELL_WORDS or links > SHELL_LINKS:
        return False
    if _has_empty_root(body):
        return True
    if marks.plea or own < words:
        return own < SHELL_WORDS // 2
    return marks.bundles and own < BUNDLE_WORDS and links <= BUNDLE_LINKS and not _has_prose(body)


def count_words(text: str) -> int:
    """Scripts without spaces count by characters."""
    cjk = len(_CJK.findall(text))
    return cjk // CJK_CHARS_PER_WORD + len(_WORD.findall(_CJK.sub(" ", text) if cjk else text))


def _text(body: Element) -> str:
    return "\n".join(piece for text in body.itertext() if (piece := " ".join(text.split())))


def _has_empty_root(body: Element) -> bool:
    roots = (each for each in body.iter(etree.Element) if _is_root(each))
    return any(count_words(_PLEA.sub("", raw_text(root))) < LOADING_WORDS for root in roots)


def _is_root(element: Element) -> bool:
    return (element.get("id") or "").lower() in _ROOT_IDS or "-" in element.tag or any(mark in element.attrib for mark in _ROOT_MARKS)


def _has_prose(body: Element) -> bool:
    return any(text_of(element) or element.get("alt") for element in body.iter("h1", "h2", "h3", "p", "li", "td", "pre", "img"))
