"""HTML inside of another format, a chapter or the body of a mail, as Markdown: all of it, but for what a reader does not see."""

from ingestion.extract.base import MEBIBYTE
from ingestion.extract.encodings import decode
from ingestion.extract.html_markdown import MarkdownWriter
from ingestion.extract.html_tree import MAX_HTML_BYTES, charset_of, drop_hidden, parse_html
from ingestion.extract.markdown import first_heading


def fragment_markdown(raw: bytes, *, warnings: list[str], charset: str = "", max_chars: int = 10_000_000) -> str:
    """ "" where there is no text in it. What is longer than an HTML file may be is cut. `warnings` gets what was lost."""
    if len(raw) > MAX_HTML_BYTES:
        warnings.append(f"Only the first {MAX_HTML_BYTES // MEBIBYTE} MiB of a part in HTML were read.")
    raw = raw[:MAX_HTML_BYTES]
    tree = parse_html(decode(raw, declared=(charset, charset_of(raw))).text, warnings=warnings)
    if tree is None:
        return ""
    drop_hidden(tree)
    body = tree.find("body")
    return MarkdownWriter(max_chars=max_chars).write(tree if body is None else body).strip()


def with_title(markdown: str, title: str) -> str:
    """Under its title, if it has no heading of its own."""
    if not title or not markdown or first_heading(markdown) or markdown.startswith("#"):
        return markdown
    return f"# {title}\n\n{markdown}"
