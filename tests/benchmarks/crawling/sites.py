"""Sites made by code: a folder of pages that look like a manual's, and one whose first pages name tens of thousands of others."""

import random
from pathlib import Path

WORDS = (
    "index",
    "table",
    "query",
    "server",
    "value",
    "column",
    "row",
    "lock",
    "buffer",
    "page",
    "reads",
    "writes",
    "keeps",
    "opens",
    "a",
    "the",
)
FAN = 20  # pages under a chapter


def write_manual(folder: Path, pages: int, *, seed: int = 7) -> None:
    """Chapters under the start page, pages under chapters, each with a menu, neighbours and about six kilobytes of text."""
    chance = random.Random(seed)
    chapters = max(1, pages // (FAN + 1))
    menu = "".join(f'<li><a href="/c{number}.html">Chapter {number}</a></li>' for number in range(min(30, chapters)))
    every = "".join(f'<li><a href="/c{number}.html">Chapter {number}</a></li>' for number in range(chapters))
    _write(folder / "index.html", "The manual", menu, _text(chance, 2) + f"<ul>{every}</ul>")
    written = 1
    for chapter in range(chapters):
        own = min(FAN, pages - written - 1) if chapter < chapters - 1 else max(0, pages - written - 1)
        names = [f"c{chapter}-{number}.html" for number in range(own)]
        parts = "".join(f'<li><a href="{name}">Part {number}</a></li>' for number, name in enumerate(names))
        _write(folder / f"c{chapter}.html", f"Chapter {chapter}", menu, _text(chance, 2) + f"<ul>{parts}</ul>")
        for number, name in enumerate(names):
            beside = "".join(f'<a href="{other}">{other}</a> ' for other in names[max(0, number - 1) : number + 2])
            title = f"Part {number} of chapter {chapter}"
            _write(folder / name, title, menu, f'<p>{beside}<a href="c{chapter}.html">Up</a></p>' + _text(chance, 6))
        written += 1 + own


def write_queue(folder: Path, addresses: int) -> None:
    """A start page over hubs that name so many pages, which are not there."""
    hubs = -(-addresses // 1000)
    _write(folder / "index.html", "Start", "", "".join(f'<p><a href="h{hub}.html">Hub {hub} of the site</a></p>' for hub in range(hubs)))
    for hub in range(hubs):
        links = "".join(f'<p><a href="p{number}.html">Page {number}</a></p>' for number in range(hub * 1000, hub * 1000 + 1000))
        _write(folder / f"h{hub}.html", f"Hub {hub}", "", links)


def _write(path: Path, title: str, menu: str, body: str) -> None:
    path.write_text(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body><nav><ul>{menu}</ul></nav>'
        f"<main><h1>{title}</h1>{body}</main><footer><p>Made by code.</p></footer></body></html>"
    )


def _text(chance: random.Random, sections: int) -> str:
    def sentence() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(8, 18))).capitalize() + "."

    def paragraph() -> str:
        return f"<p>{' '.join(sentence() for _ in range(chance.randint(3, 6)))}</p>"

    return "".join(f"<h2>{sentence()}</h2>{paragraph()}{paragraph()}" for _ in range(sections))
