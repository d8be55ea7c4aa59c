"""reStructuredText by docutils, which inserts no files and passes nothing raw; the words of Sphinx are understood as far as they
hold text."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.languages import en

from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.markdown import first_heading
from ingestion.extract.rst_writer import document_markdown
from ingestion.extract.text import read_text

MEDIA_TYPE = "text/x-rst"
# docutils reads some 30,000 characters a second; what is longer stays as it is written, which people read well too.
MAX_CHARS = 400_000
MAX_LINE_CHARS = 10_000
MAX_WORDS = 500
SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "report_level": 5,
    "halt_level": 6,
    "warning_stream": False,
    "doctitle_xform": False,
    "docinfo_xform": False,
    "syntax_highlight": "none",
    "line_length_limit": MAX_LINE_CHARS,
    "input_encoding": "unicode",
}
CODE = frozenset({"code-block", "sourcecode", "prompt", "parsed-literal", "doctest", "testcode", "testoutput"})
# What these hold is for the machine that builds the pages.
SILENT = frozenset(
    {
        *("toctree", "index", "highlight", "currentmodule", "module", "tabularcolumns", "include", "literalinclude", "raw", "testsetup"),
        *("testcleanup", "graphviz", "digraph", "plot", "inheritance-diagram", "default-domain", "meta", "autosummary", "contents"),
    }
)
VERSIONS = {
    "versionadded": "Added in version", "versionchanged": "Changed in version", "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}  # fmt: skip
_DIRECTIVE = re.compile(r"^\s*\.\. +(?:\|[^|\n]+\| +)?([\w.+:-]+?)::", re.MULTILINE)
_ROLE = re.compile(r":((?:\w[\w.+-]*:)?\w[\w.+-]*):`|`:((?:\w[\w.+-]*:)?\w[\w.+-]*):")
_TITLED = re.compile(r"(.*?)\s*<[^<>]+>\s*\Z", re.DOTALL)
_NAMES_OF_CODE = frozenset(
    {
        *("func", "class", "meth", "attr", "mod", "data", "exc", "obj", "const", "type", "macro", "member", "keyword", "token"),
        *("option", "envvar", "file", "program", "command", "samp", "kbd"),
    }
)


class RstExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        decoded = read_text(data, limits=limits, served=served)
        text = decoded.text
        if len(text) <= MAX_CHARS and max(map(len, text.splitlines()), default=0) <= MAX_LINE_CHARS:
            text = _markdown(text) or text
        return Extracted(
            markdown=text,
            title=first_heading(text) or Path(name).stem,
            media_type=MEDIA_TYPE,
            metadata={"encoding": decoded.encoding},
            truncated=decoded.cut,
            warnings=decoded.warnings,
        )


def _markdown(text: str) -> str:
    """ "" for what docutils cannot follow."""
    with _known_words(text):
        try:
            return document_markdown(publish_doctree(text, settings_overrides=SETTINGS))
        except MemoryError:
            raise
        except Exception:  # the markup of a stranger makes docutils raise whatever it raises; its text is there all the same
            return ""


@contextmanager
def _known_words(text: str) -> Iterator[None]:
    """Directives and roles of this text that docutils does not know are known while it is read."""
    named = list(dict.fromkeys(match[1].lower() for match in _DIRECTIVE.finditer(text)))[:MAX_WORDS]
    spoken = list(dict.fromkeys((match[1] or match[2]).lower() for match in _ROLE.finditer(text)))[:MAX_WORDS]
    added = {name: _directive_for(name) for name in named if name not in en.directives or name in SILENT | CODE}
    new_roles = [name for name in spoken if name not in en.roles]
    before = dict(directives._directives), dict(roles._roles)
    directives._directives.update(added)
    for name in new_roles:
        roles.register_local_role(name, _role(name))
    try:
        yield
    finally:
        directives._directives.clear()
        directives._directives.update(before[0])
        roles._roles.clear()
        roles._roles.update(before[1])


class _AnyOptions(dict[str, Callable[[str | None], str]]):
    """Whatever options a directive is given."""

    def __missing__(self, name: str) -> Callable[[str | None], str]:
        return lambda value: value or ""


class _Words(Directive):
    """What a directive that docutils does not know says: its argument, and what stands in it."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOptions(any=str)
    bare_name = ""

    def run(self) -> list[nodes.Node]:
        argument = " ".join(self.arguments[0].split()) if self.arguments else ""
        if self.bare_name in SILENT:
            return []
        if self.bare_name in CODE:
            text = "\n".join(self.content)
            return [nodes.literal_block(text, text, classes=["code", argument or "text"])]
        holder = nodes.container()
        if self.bare_name in VERSIONS:
            argument = f"{VERSIONS[self.bare_name]} {argument}".strip()
            holder += nodes.paragraph("", "", nodes.emphasis(argument, argument))
        elif argument:
            holder += nodes.paragraph("", "", nodes.literal(argument, argument))
        self.state.nested_parse(self.content, self.content_offset, holder)
        return [holder]


def _directive_for(name: str) -> type[Directive]:
    return type("_Named", (_Words,), {"bare_name": name.rpartition(":")[2]})


def _role(name: str) -> Any:
    is_code = name.rpartition(":")[2] in _NAMES_OF_CODE

    def role(role_name: str, raw: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = ()) -> Any:
        titled = _TITLED.fullmatch(text)
        shown = titled[1] if titled and titled[1] else text
        if shown.startswith("~"):
            shown = shown[1:].rpartition(".")[2] or shown[1:]
        shown = shown.removeprefix("!")
        return [nodes.literal(raw, shown) if is_code else nodes.inline(raw, shown)], []

    return role
