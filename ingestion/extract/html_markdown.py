"""An HTML tree to Markdown: headings, lists, tables, code with its language, quotes, links. Words stay as they are: nothing in
them is escaped, because `snake\\_case` is not found by who searches for snake_case."""

import re
from urllib.parse import urljoin

from ingestion.extract.fences import fence
from ingestion.extract.html_tables import table_blocks
from ingestion.extract.html_tree import Element, raw_text, text_of

MAX_DEPTH = 120
MAX_LINK_CHARS = 300

HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCK_NAMES = (
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 "
    "header hgroup hr html legend li main menu nav ol p pre search section summary table tbody td tfoot th thead tr ul caption"
)
BLOCKS = frozenset(_BLOCK_NAMES.split())
SKIPPED = frozenset({"script", "style", "head", "title", "meta", "link", "colgroup", "col", "img", "br", "wbr"})
_LANGUAGE = re.compile(r"(?:^|\s)(?:lang(?:uage)?-|highlight-(?:source-)?|brush:\s*|sourceCode\s+)([A-Za-z0-9+#_-]+)")
_NO_LANGUAGES = frozenset({"default", "none", "text", "plaintext", "plain", "notranslate"})
_FALSE_MARK = re.compile(r"^(#{1,6} |```|~~~|(?:-{3,}|={3,})$)")


class MarkdownWriter:
    """Stops after about `max_chars`, and `full` says so: what is cut away later need not be written."""

    def __init__(self, *, base: str = "", max_chars: int = 10_000_000) -> None:
        self._base = base
        self._room = max_chars
        self._holders: dict[Element, None] = {}
        self.full = False

    def write(self, element: Element) -> str:
        for block in element.iter(*BLOCKS):
            while (block := block.getparent()) is not None and block not in self._holders:
                self._holders[block] = None
        return "\n\n".join(block for block in self.blocks(element, 0) if block.strip()) + "\n"

    def blocks(self, element: Element, depth: int) -> list[str]:
        """One string for each block below an element; runs of inline content between blocks are paragraphs."""
        if self._room < 0:
            self.full = True
            return []
        if depth > MAX_DEPTH:
            return [self._counted(text_of(element))]
        tag = element.tag
        if tag in HEADINGS:
            text = self.inline(element, depth, links=False).replace("\n", " ").strip()
            return [f"{'#' * HEADINGS[tag]} {text}"] if text else []
        if tag == "pre":
            return [self._counted(_code_block(element))]
        if tag in ("ul", "ol", "menu"):
            return [self._list(element, depth)]
        if tag == "table":
            return [self._counted(block) for block in table_blocks(element, self, depth)]
        if tag == "blockquote":
            inner = "\n\n".join(self._mixed(element, depth))
            return ["\n".join(f"> {line}".rstrip() for line in inner.splitlines())] if inner else []
        if tag == "dl":
            return [self._definitions(element, depth)]
        if tag == "hr":
            return ["---"]
        return self._mixed(element, depth)

    def _mixed(self, element: Element, depth: int) -> list[str]:
        blocks: list[str] = []
        run = [_collapsed(element.text)]
        for child in element:
            if not isinstance(child.tag, str):
                run.append(_collapsed(child.tail))
            elif child.tag in BLOCKS or (child in self._holders and child.tag not in SKIPPED):
                blocks += [self._counted(_paragraph("".join(run))), *self.blocks(child, depth + 1)]
                run = [_collapsed(child.tail)]
            else:
                self._append_inline(run, child, depth, links=True)
        return [block for block in [*blocks, self._counted(_paragraph("".join(run)))] if block]

    def _counted(self, text: str) -> str:
        self._room -= len(text)
        return text

    def inline(self, element: Element, depth: int, *, links: bool = True) -> str:
        """Everything below as one run of text; block children are set apart by a space."""
        if depth > MAX_DEPTH:
            return text_of(element)
        run = [_collapsed(element.text)]
        for child in element:
            if isinstance(child.tag, str):
                self._append_inline(run, child, depth, links=links)
            else:
                run.append(_collapsed(child.tail))
        return "".join(run)

    def _append_inline(self, run: list[str], child: Element, depth: int, *, links: bool) -> None:
        before, after = (run[-1][-1:] if run else ""), (child.tail or "")[:1]
        text = self._inline_element(child, depth, links=links, apart=not (before.isalnum() or after.isalnum()))
        run += [text, _collapsed(child.tail)]

    def _inline_element(self, element: Element, depth: int, *, links: bool, apart: bool) -> str:
        tag = element.tag
        if tag == "br":
            return "\n"
        if tag == "img":
            alt = " ".join((element.get("alt") or "").split())
            return alt if " " in alt else ""  # a description, not a file name or an icon
        if tag in SKIPPED:
            return ""
        if tag in ("code", "kbd", "samp", "tt"):
            return _code_span(text_of(element))
        inner = self.inline(element, depth + 1, links=links)
        if tag == "a":
            return self._link(element, inner) if links else "" if _is_anchor_sign(element, inner) else inner
        if tag in ("strong", "b", "em", "i") and apart and inner.strip():
            mark = "**" if tag in ("strong", "b") else "*"
            return inner if mark in inner else inner.replace(inner.strip(), f"{mark}{inner.strip()}{mark}", 1)
        return f" {inner} " if tag in BLOCKS else inner

    def _link(self, element: Element, inner: str) -> str:
        if _is_anchor_sign(element, inner):
            return ""
        text = inner.strip()
        target = (element.get("href") or "").strip()
        if not text or not target or target.startswith("#") or "](" in text:
            return inner
        try:
            target = (
                (target if target.startswith(("https://", "http://")) else urljoin(self._base, target))
                .replace(" ", "%20")
                .replace("(", "%28")
                .replace(")", "%29")
            )
        except ValueError:
            return inner
        scheme = target.partition(":")[0].lower() if ":" in target.partition("/")[0] else ""
        if scheme not in ("", "http", "https", "mailto") or len(target) > MAX_LINK_CHARS:
            return inner
        text = text.replace("\n", " ")
        return inner.replace(inner.strip(), f"[{text}]({target})", 1)

    def _list(self, element: Element, depth: int) -> str:
        start = element.get("start", "")
        number = int(start) if start.isdecimal() and len(start) < 9 else 1
        items = []
        for child in element:
            if not isinstance(child.tag, str) or child.tag in SKIPPED:
                continue
            mark = f"{number}. " if element.tag == "ol" else "- "
            blocks = self.blocks(child, depth + 1)
            if not blocks:
                continue
            if child.tag in ("ul", "ol"):
                items.append(_indented(blocks[0], "  "))  # a list put straight into a list
                continue
            number += 1
            tight = len(blocks) < 3 and not any(block.startswith(("```", "|", "#")) for block in blocks)
            items.append(mark + _indented(("\n" if tight else "\n\n").join(blocks), " " * len(mark)).lstrip())
        return "\n".join(items)

    def _definitions(self, element: Element, depth: int) -> str:
        lines: list[str] = []
        for child in element.iter("dt", "dd"):
            if next(child.iterancestors("dl"), None) is not element:
                continue
            blocks = self._mixed(child, depth + 1)
            if not blocks:
                continue
            if child.tag == "dt":
                lines.append("- " + " ".join(blocks))
            else:
                lines.append(_indented("\n\n".join(blocks), "  "))
        return "\n".join(lines)


def _code_block(element: Element) -> str:
    for line_break in list(element.iter("br")):
        line_break.tail = "\n" + (line_break.tail or "")
    code = next(element.iter("code"), element)
    near = [code, element, *list(element.iterancestors())[:2]]
    for candidate in near:
        match = _LANGUAGE.search(candidate.get("class") or "")
        if match and match[1].lower() not in _NO_LANGUAGES:
            return fence(raw_text(element), language=match[1].lower()).rstrip("\n")
    return fence(raw_text(element)).rstrip("\n")


def _code_span(text: str) -> str:
    if not text:
        return ""
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def _is_anchor_sign(element: Element, inner: str) -> bool:
    return (element.get("href") or "").startswith("#") and inner.strip() in ("¶", "#", "§", "🔗", "\uf0c1")


def _collapsed(text: str | None) -> str:
    """Every run of white space as one space, also at the ends."""
    if not text:
        return ""
    words = " ".join(text.split())
    if not words:
        return " "
    return f"{' ' if text[0].isspace() else ''}{words}{' ' if text[-1].isspace() else ''}"


def _paragraph(run: str) -> str:
    if "\n" not in run:
        return _marked(" ".join(run.split()))
    lines = (" ".join(line.split()) for line in run.split("\n"))
    return "\n".join(_marked(line) for line in lines if line)


def _marked(line: str) -> str:
    """What only looks like Markdown stays text."""
    return f"\\{line}" if line and line[0] in "#`~-=" and _FALSE_MARK.match(line) else line


def _indented(text: str, by: str) -> str:
    return "\n".join(by + line if line else line for line in text.splitlines())
