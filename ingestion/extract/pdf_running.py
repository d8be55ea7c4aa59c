"""Running headers and footers: lines at the edge of pages that come again on the next ones, alike but for the number of the page."""

import re
from collections import defaultdict
from collections.abc import Sequence

from ingestion.extract.pdf_lines import Line

MIN_PAGES = 3
# Left and right pages may differ, and a picture may stand where one would be.
MAX_STEP = 2
EDGE_LINES = 2
MAX_CHARS = 200
# Points by which the same line may stand elsewhere on the next page.
SHIFT = 4
# A number beside words may be an invoice's as well as a page's: so many pages must agree.
NUMBERED_PAGES = 8
MAX_OFFSET = 500
AGREEING = 0.8
_NUMBER = re.compile(r"\d{1,9}")
_ROMAN = re.compile(r"\W*[ivxlcdm]{1,7}\W*", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]{2,}")
_PAGE_WORDS = frozenset({"page", "of", "seite", "von", "sur", "de", "pagina", "página", "стр", "страница", "sida", "av", "side", "af"})

Spot = tuple[int, int]


def without_running(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages' lines without numbers of pages, and with the words of a header or footer only where they stand first.
    No page loses all its lines."""
    seen: dict[str, list[Spot]] = defaultdict(list)
    for page, lines in enumerate(pages):
        for at in _edges(lines):
            seen[_pattern(lines[at].text)].append((page, at))
    dropped: set[Spot] = set()
    for pattern, spots in seen.items():
        for run in _runs(pages, spots):
            dropped.update(_surplus(pages, pattern, run))
    kept = [[line for at, line in enumerate(lines) if (page, at) not in dropped] for page, lines in enumerate(pages)]
    return [some or all_ for some, all_ in zip(kept, pages, strict=True)]


def _edges(lines: Sequence[Line]) -> list[int]:
    """Indices of the topmost and lowest lines."""
    order = sorted(range(len(lines)), key=lambda at: lines[at].middle)
    return [at for at in {*order[:EDGE_LINES], *order[-EDGE_LINES:]} if not lines[at].table and len(lines[at].text) <= MAX_CHARS]


def _pattern(text: str) -> str:
    return "#" if _ROMAN.fullmatch(text) else _NUMBER.sub("#", text.casefold())


def _runs(pages: Sequence[list[Line]], spots: Sequence[Spot]) -> list[list[Spot]]:
    """Spots on at least MIN_PAGES pages, one a page, that follow each other closely and stand at one height."""
    runs: list[list[Spot]] = []
    for spot in spots:
        height = pages[spot[0]][spot[1]].middle
        for run in reversed(runs):
            page, at = run[-1]
            if page < spot[0] <= page + MAX_STEP and abs(pages[page][at].middle - height) <= SHIFT:
                run.append(spot)
                break
        else:
            runs.append([spot])
    return [run for run in runs if len(run) >= MIN_PAGES]


def _surplus(pages: Sequence[list[Line]], pattern: str, run: Sequence[Spot]) -> Sequence[Spot]:
    """What of a run says nothing new."""
    texts = [pages[page][at].text for page, at in run]
    words = _WORDS.findall(pattern)
    if pattern == "#" and not any(map(_NUMBER.search, texts)):
        return run  # Roman
    if len(set(texts)) == 1:
        return run[1:]
    if not _counts_pages([page for page, _ in run], [list(map(int, _NUMBER.findall(text))) for text in texts]):
        return ()
    if _PAGE_WORDS.issuperset(words):
        return run
    return run[1:] if len(run) >= NUMBERED_PAGES else ()


def _counts_pages(pages: Sequence[int], numbers: Sequence[Sequence[int]]) -> bool:
    """Whether one number of each line is that of its page, give or take what stands before the first, and the others stay the same."""
    for position in range(len(numbers[0])):
        column = [row[position] for row in numbers]
        offsets = [value - page for value, page in zip(column, pages, strict=True)]
        most = max(set(offsets), key=offsets.count)
        rest = {tuple(row[:position]) + tuple(row[position + 1 :]) for row in numbers}
        if offsets.count(most) >= AGREEING * len(offsets) and -MAX_OFFSET <= most <= MAX_OFFSET and len(rest) == 1:
            return True
    return False
