"""Sitemaps in every form that the protocol allows."""

from collections.abc import Iterable
from xml.sax.saxutils import escape

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def urlset(urls: Iterable[str], *, prefix: str = "", charset: str = "UTF-8", extra: str = "") -> bytes:
    """`prefix` gives every element a namespace prefix; `extra` is markup put into each `url` (images, alternates)."""
    return _document("urlset", "url", urls, prefix=prefix, charset=charset, extra=extra)


def index(urls: Iterable[str], *, prefix: str = "", charset: str = "UTF-8") -> bytes:
    return _document("sitemapindex", "sitemap", urls, prefix=prefix, charset=charset)


def rss(urls: Iterable[str]) -> bytes:
    items = "".join(f"<item><title>News</title><link>{escape(url)}</link></item>" for url in urls)
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>/</link>{items}</channel></rss>'.encode()


def atom(urls: Iterable[str]) -> bytes:
    """Each entry also has links that are no pages (`self`, `enclosure`)."""
    entries = "".join(
        f'<entry><title>News</title><link rel="self" href="{escape(url)}.xml"/><link href="{escape(url)}"/>'
        f'<link rel="enclosure" href="{escape(url)}.mp3"/></entry>'
        for url in urls
    )
    return f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>{entries}</feed>'.encode()


def text_sitemap(urls: Iterable[str]) -> bytes:
    return "\n".join(urls).encode()


def _document(root: str, entry: str, urls: Iterable[str], *, prefix: str, charset: str, extra: str = "") -> bytes:
    colon = f"{prefix}:" if prefix else ""
    declared = f'xmlns:{prefix}="{NAMESPACE}"' if prefix else f'xmlns="{NAMESPACE}"'
    inner = "".join(f"<{colon}{entry}><{colon}loc>{escape(url)}</{colon}loc>{extra}</{colon}{entry}>\n" for url in urls)
    text = f'<?xml version="1.0" encoding="{charset}"?>\n<{colon}{root} {declared}>\n{inner}</{colon}{root}>\n'
    return text.encode(charset)
