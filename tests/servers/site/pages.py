"""Pages as sites have them: head, navigation, an article that a main-text extraction finds, footer."""

import itertools
import random
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_SUBJECTS = (
    "The pump",
    "The operator",
    "Every gauge",
    "The upper valve",
    "A worn bearing",
    "The night crew",
    "This pipeline",
    "The control room",
    "Each filter",
    "The spare motor",
    "A cracked seal",
    "The cooling tower",
    "The inspector",
    "The supply line",
    "Our workshop",
    "The storage tank",
)
_VERBS = (
    "must be checked against",
    "is usually replaced together with",
    "slowly loses pressure because of",
    "was connected last year to",
    "depends in winter on",
    "shows the same reading as",
    "cannot be started without",
    "is documented in the section about",
    "should be cleaned before",
    "reports its temperature to",
)
_OBJECTS = (
    "the reserve circuit",
    "an older type of coupling",
    "the weekly schedule",
    "the main distribution board",
    "a second measurement",
    "the water level of the basin",
    "the emergency procedure",
    "its own calibration sheet",
    "the contractor's report",
    "the pressure relief valve",
    "a written confirmation",
    "the shift that follows",
)
_ENDINGS = (
    "whenever the load rises above the usual value",
    "as the manual explains in detail",
    "so that nobody has to guess",
    "although this is rarely needed in practice",
    "and the result is kept for ten years",
    "before the next season begins",
    "if the alarm has been acknowledged",
    "which takes about twenty minutes",
)


def paragraph(seed: object, *, sentences: int = 4) -> str:
    """English prose that nobody wrote, the same for the same seed."""
    chance = random.Random(str(seed))
    return " ".join(
        f"{chance.choice(_SUBJECTS)} {chance.choice(_VERBS)} {chance.choice(_OBJECTS)} {chance.choice(_ENDINGS)}." for _ in range(sentences)
    )


def paragraphs(seed: object, number: int = 4) -> list[str]:
    return [paragraph(f"{seed}/{part}") for part in range(number)]


@dataclass(frozen=True, slots=True)
class Link:
    href: str
    text: str = ""
    rel: str = ""

    @property
    def html(self) -> str:
        rel = f' rel="{escape(self.rel)}"' if self.rel else ""
        return f'<a href="{escape(self.href)}"{rel}>{escape(self.text or self.href)}</a>'


def page(
    title: str,
    paragraphs: Iterable[str] = (),
    *,
    links: Iterable[str | Link] = (),
    navigation: Iterable[str | Link] = (),
    language: str = "en",
    charset: str = "utf-8",
    base: str = "",
    canonical: str = "",
    refresh: str = "",
    robots: str = "",
    frames: Sequence[str] = (),
    head: str = "",
    body: str = "",
) -> str:
    """`links` stand in a list below the text, `navigation` above it. `charset` is what the page says of itself ("" says nothing),
    `refresh` the content of the meta tag ("0; url=/b"), `robots` that of meta robots; `head` and `body` are markup of one's own."""
    metas = [
        f'<meta charset="{charset}">' if charset else "",
        f"<title>{escape(title)}</title>",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<base href="{escape(base)}">' if base else "",
        f'<link rel="canonical" href="{escape(canonical)}">' if canonical else "",
        f'<meta http-equiv="refresh" content="{escape(refresh)}">' if refresh else "",
        f'<meta name="robots" content="{escape(robots)}">' if robots else "",
        head,
    ]
    text = "".join(f"<p>{escape(part)}</p>\n" for part in paragraphs)
    frameset = "".join(f'<iframe src="{escape(address)}"></iframe>' for address in frames)
    further = _list(links)
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>{"".join(metas)}<style>body {{ font: 16px serif }}</style></head>\n<body>\n'
        f'<header><a class="skip" href="#content">Skip to content</a><nav>{_list(navigation)}</nav></header>\n'
        f'<main id="content"><article><h1>{escape(title)}</h1>\n{text}{body}{frameset}</article>\n{further}</main>\n'
        "<footer><p>Example Waterworks. All rights reserved.</p></footer>\n</body>\n</html>\n"
    )


def _list(links: Iterable[str | Link]) -> str:
    entries = [link if isinstance(link, Link) else Link(link) for link in links]
    return f"<ul>{''.join(f'<li>{link.html}</li>' for link in entries)}</ul>\n" if entries else ""


def noisy(title: str, paragraphs: Iterable[str] = (), **options: Any) -> Callable[[object], str]:
    """The same page to a reader and other bytes on each request: a nonce, a CSRF token, a counter, a clock."""
    kept = list(paragraphs)
    number = itertools.count(1)

    def answer(request: object) -> str:
        token = secrets.token_hex(16)
        head = f'<meta name="csrf-token" content="{token}"><script nonce="{token[:12]}">window.boot = {time.time_ns()};</script>'
        form = f'<form action="/search"><input type="hidden" name="csrf" value="{token}"><input name="q"></form>'
        clock = f'<div class="clock" data-hit="{next(number)}"><time datetime="{time.time()}"></time></div>'
        return page(title, kept, **{**options, "head": head, "body": form + clock})

    return answer
