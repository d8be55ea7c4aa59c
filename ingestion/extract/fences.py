"""Fenced code blocks: what gets one, and a fence that its content cannot close."""

import re

_OWN_NAMES = "json yaml xml toml ini sql css scss go java swift kotlin php lua perl dart vue diff log jsx tsx c cpp scala r bat"

# Extension -> language written after the fence. What is not here is prose and stays as it is.
FENCE_LANGUAGES: dict[str, str] = {name: name for name in _OWN_NAMES.split()} | {
    "yml": "yaml", "jsonl": "json", "ndjson": "json", "geojson": "json", "ipynb": "json", "xsd": "xml", "xsl": "xml", "svg": "xml",
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "ts": "typescript",
    "sh": "bash", "bash": "bash", "zsh": "bash",
    "ps1": "powershell", "rb": "ruby", "rs": "rust", "kt": "kotlin", "h": "c", "cc": "cpp", "hpp": "cpp", "cs": "csharp", "pl": "perl",
    "m": "objectivec", "cfg": "ini", "conf": "ini", "tf": "hcl", "proto": "protobuf", "ex": "elixir", "patch": "diff", "erl": "erlang",
    "hs": "haskell", "clj": "clojure", "jl": "julia", "tex": "latex",
}  # fmt: skip
_BACKTICKS = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


def fence(text: str, *, language: str = "") -> str:
    """A fenced block with the text's own lines, or "" when there is nothing to see in it."""
    body = text.strip("\n").rstrip()
    if not body.strip():
        return ""
    marks = "`" * max([3] + [len(run) + 1 for run in _BACKTICKS.findall(body)])
    return f"{marks}{language}\n{body}\n{marks}\n"
