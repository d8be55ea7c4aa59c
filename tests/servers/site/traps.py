"""Parts of a site that never end. Each is a function of the request, for `site.put("/calendar/*", calendar)`."""

import re
from urllib.parse import parse_qsl, urlencode

from tests.servers.site.pages import Link, page, paragraph
from tests.servers.site.server import Request


def calendar(request: Request) -> str:
    """A month with links to the one before and the one after, and to each of its days, for ever (`…/2024/05/`)."""
    found = re.search(r"/(\d{4})/(\d{1,2})", request.path)
    year, month = (int(found[1]), int(found[2])) if found else (2024, 5)
    root = request.path.split("/")[1]

    def to(distance: int) -> Link:
        years, months = divmod(year * 12 + month - 1 + distance, 12)
        return Link(f"/{root}/{years:04d}/{months + 1:02d}/", "earlier" if distance < 0 else "later")

    days = [Link(f"/{root}/{year:04d}/{month:02d}/{day:02d}/", str(day)) for day in range(1, 29)]
    return page(f"Events in {year}-{month:02d}", ["There are no events.", paragraph((year, month))], links=[to(-1), to(1), *days])


def growing_query(request: Request) -> str:
    """A listing whose filters are added to what the address has already."""
    have = parse_qsl(request.query)
    links = [Link(f"?{urlencode([*have, (name, str(len(have)))])}", f"by {name}") for name in ("colour", "size", "page")]
    return page("Parts by filter", [paragraph("filters")], links=links)


def repeating_path(request: Request) -> str:
    """A relative link without its leading slash, answered wherever it leads: `/a/b/a/b/a/b/…`."""
    return page("About us", [paragraph("about")], links=["about/us/", "about/team/"])


def spiral(request: Request) -> str:
    """Every page leads to one deeper page and says something new."""
    depth = len([part for part in request.path.split("/") if part])
    return page(f"Level {depth}", [paragraph(("level", depth), sentences=8)], links=[f"{request.path.rstrip('/')}/{depth}"])
