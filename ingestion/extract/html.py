"""HTML: the document of a page as Markdown, with what the page says about itself."""

import re
from pathlib import Path

from config.errors import ExtractionError
from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.html_main import main_text
from ingestion.extract.html_markdown import MarkdownWriter
from ingestion.extract.html_metadata import read_metadata
from ingestion.extract.html_page import describe_nothing, describe_page
from ingestion.extract.html_shell import needs_javascript, shell_marks
from ingestion.extract.html_tree import Element, drop_hidden, parse_html, read_html, text_of
from ingestion.extract.markdown import first_heading

_LANGUAGE = re.compile(r"\s*([A-Za-z]{2})(?:[-_]|\s*\Z)")


class HtmlExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        decoded = read_html(data, charset=served.charset if served else "")
        warnings = list(decoded.warnings)
        tree = parse_html(decoded.text, warnings=warnings)
        if tree is None:
            return _nothing(name, served=served)
        page = describe_page(tree, served=served) if served else None
        metadata, marks = read_metadata(tree), shell_marks(tree)
        drop_hidden(tree)
        if needs_javascript(marks, tree):
            if page is None:
                advice = "Save it from a browser once all of it is shown."
                raise ExtractionError(f"{name} is a page that JavaScript fills.", advice=advice, reason="needs_javascript", retires=True)
            return Extracted(markdown="", title=_page_title(tree), media_type="text/html", page=page | {"needs_javascript": True})
        canonical = page["canonical"] if page else _canonical(tree)
        heading = _heading(tree)
        writer = MarkdownWriter(base=page["base"] if page else _base(tree) or canonical, max_chars=limits.wanted_chars)
        markdown = writer.write(main_text(tree))
        return Extracted(
            markdown=_with_heading(markdown, heading),
            title=metadata.title or heading or _page_title(tree) or Path(name).stem,
            media_type="text/html",
            language=_language(tree),
            metadata=metadata.fields | {"encoding": decoded.encoding} | ({"canonical": canonical} if canonical else {}),
            truncated=decoded.cut or writer.full,
            warnings=warnings,
            page=page,
        )


def _nothing(name: str, *, served: Served | None) -> Extracted:
    if served is None:
        raise ExtractionError(f"{name} holds no text to search in.", advice="Upload a page with text.", reason="empty", retires=True)
    return Extracted(markdown="", title="", media_type="text/html", page=describe_nothing(served=served))


def _with_heading(markdown: str, heading: str) -> str:
    """The page's own heading often stands outside of the part that is the document."""
    if not heading or not markdown.strip() or first_heading(markdown):
        return markdown
    return f"# {heading}\n\n{markdown}"


def _page_title(tree: Element) -> str:
    return " ".join((tree.findtext(".//title") or "").split())


def _heading(tree: Element) -> str:
    """Of a page that has exactly one; where there are several, they are not the page's."""
    headings = [text for each in tree.iter("h1") if (text := text_of(each))]
    return headings[0].rstrip("¶# ") if len(headings) == 1 else ""


def _language(tree: Element) -> str | None:
    match = _LANGUAGE.match(tree.get("lang") or tree.get("{http://www.w3.org/XML/1998/namespace}lang") or "")
    return match[1].lower() if match else None


def _canonical(tree: Element) -> str:
    for link in tree.iter("link"):
        if "canonical" in (link.get("rel") or "").lower().split() and (link.get("href") or "").startswith(("http://", "https://")):
            return link.get("href", "").strip()
    return ""


def _base(tree: Element) -> str:
    base = next(tree.iter("base"), None)
    href = (base.get("href") or "").strip() if base is not None else ""
    return href if href.startswith(("http://", "https://")) else ""
