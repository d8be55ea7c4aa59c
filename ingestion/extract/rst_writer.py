"""A tree of docutils as Markdown."""

from collections.abc import Sequence

from docutils import nodes

from ingestion.extract.fences import fence
from ingestion.extract.tables import markdown_table

MAX_LEVEL = 6
MAX_SPAN = 1_000
_SILENT = (
    *(nodes.comment, nodes.target, nodes.substitution_definition, nodes.system_message),
    *(nodes.pending, nodes.meta, nodes.raw, nodes.decoration),
)


def document_markdown(document: nodes.document) -> str:
    return "\n\n".join(_blocks(document, level=1))


def _blocks(parent: nodes.Element, *, level: int) -> list[str]:
    out: list[str] = []
    for node in parent.children:
        if isinstance(node, _SILENT):
            continue
        if isinstance(node, nodes.Text):
            out.append(" ".join(node.astext().split()))
        elif isinstance(node, nodes.Element):
            out += _block(node, level=level)
    return [block for block in out if block.strip()]


def _block(node: nodes.Element, *, level: int) -> list[str]:
    match node:
        case nodes.section():
            return _blocks(node, level=level + 1)
        case nodes.title() | nodes.subtitle():
            return [f"{'#' * min(max(level - 1, 1), MAX_LEVEL)} {_inline(node)}"]
        case nodes.bullet_list():
            return [_list(node, level=level)]
        case nodes.enumerated_list():
            return [_list(node, level=level, first=int(node.get("start", 1)))]
        case nodes.definition_list() | nodes.option_list():
            return [_definitions(node, level=level)]
        case nodes.field_list() | nodes.docinfo():
            return ["\n".join(_field(field, level=level) for field in node.children if isinstance(field, nodes.Element))]
        case nodes.doctest_block():
            return [fence(node.astext(), language="python").rstrip("\n")]
        case nodes.literal_block():
            return [fence(node.astext(), language=_language(node)).rstrip("\n")]
        case nodes.math_block():
            return [f"$$\n{node.astext()}\n$$"]
        case nodes.line_block():
            return ["\n".join(_lines(node, 0))]
        case nodes.block_quote():
            return ["\n".join(f"> {line}".rstrip() for line in "\n\n".join(_blocks(node, level=level)).splitlines())]
        case nodes.table():
            return _table(node, level=level)
        case nodes.footnote() | nodes.citation():
            return _labelled(node, level=level)
        case nodes.image():
            return [node.get("alt", "")]
        case nodes.transition():
            return ["---"]
        case nodes.rubric():
            return [f"**{_inline(node)}**"]
        case nodes.topic() if "contents" in node.get("classes", ()):
            return []
        case nodes.topic() | nodes.sidebar() | nodes.Admonition():
            return _admonition(node, level=level)
        case nodes.TextElement():
            return [_inline(node)]
        case _:
            return _blocks(node, level=level)


def _list(node: nodes.Element, *, level: int, first: int | None = None) -> str:
    items = []
    for number, item in enumerate(node.children, start=first or 0):
        if isinstance(item, nodes.Element):
            items.append(_item("- " if first is None else f"{number}. ", _blocks(item, level=level)))
    return "\n".join(items)


def _item(mark: str, blocks: Sequence[str]) -> str:
    """Lists follow their paragraph at once, so that a list stays a list."""
    text = ""
    for block in blocks:
        text += ("\n" if block.startswith(("- ", "1. ")) else "\n\n") * bool(text) + block
    return mark + text.replace("\n", "\n" + " " * len(mark)).replace("\n" + " " * len(mark) + "\n", "\n\n")


def _definitions(node: nodes.Element, *, level: int) -> str:
    items = []
    for item in node.children:
        if not isinstance(item, nodes.Element):
            continue
        parts = [part for part in item.children if isinstance(part, nodes.Element)]
        name = " : ".join(_inline(part) for part in parts if isinstance(part, (nodes.term, nodes.classifier)))
        name = name or ", ".join(option.astext() for part in parts if isinstance(part, nodes.option_group) for option in part.children)
        body = [block for part in parts if isinstance(part, (nodes.definition, nodes.description)) for block in _blocks(part, level=level)]
        items.append(_item("- ", _named(name, body, mark="**{}**:")))
    return "\n".join(items)


def _field(field: nodes.Element, *, level: int) -> str:
    if not isinstance(field, nodes.field):
        return f"- {field.tagname.capitalize()}: {_inline(field)}"
    name, body = field.children[0], field.children[-1]
    blocks = _blocks(body, level=level) if isinstance(body, nodes.field_body) else []
    return _item("- ", [f"{name.astext()}: {blocks[0] if blocks else ''}".rstrip(), *blocks[1:]])


def _labelled(node: nodes.Element, *, level: int) -> list[str]:
    label = next((child.astext() for child in node.children if isinstance(child, nodes.label)), "")
    blocks = [block for child in _elements(node) if not isinstance(child, nodes.label) for block in _block(child, level=level)]
    return [f"[{label}] {blocks[0]}", *blocks[1:]] if blocks else []


def _admonition(node: nodes.Element, *, level: int) -> list[str]:
    title = next((child for child in node.children if isinstance(child, nodes.title)), None)
    name = _inline(title) if title is not None else node.tagname.capitalize() if not isinstance(node, nodes.topic) else ""
    blocks = [block for child in _elements(node) if child is not title for block in _block(child, level=level)]
    if not name:
        return blocks
    return _named(name, blocks, mark="**{}:**")


def _named(name: str, blocks: Sequence[str], *, mark: str) -> list[str]:
    """A name before a paragraph, or above anything else."""
    if blocks and not blocks[0].startswith(("```", "- ", "|", ">", "#", "1. ")):
        return [f"{mark.format(name)} {blocks[0]}", *blocks[1:]]
    return [mark.format(name), *blocks]


def _table(table: nodes.Element, *, level: int) -> list[str]:
    """Cells over columns leave empty ones; cells over rows say their text in each."""
    blocks = [f"**{_inline(child)}**" for child in table.children if isinstance(child, nodes.title)]
    grid: list[list[str]] = []
    hanging: dict[int, tuple[str, int]] = {}
    for row in table.findall(nodes.row):
        line: list[str] = []
        for entry in row.children:
            if not isinstance(entry, nodes.Element):
                continue
            _hang(line, hanging)
            text = " ".join(" ".join(_blocks(entry, level=level)).split())
            for place in range(min(int(entry.get("morecols", 0)), MAX_SPAN) + 1):
                value = "" if place else text
                if down := min(int(entry.get("morerows", 0)), MAX_SPAN):
                    hanging[len(line)] = (value, down)
                line.append(value)
        _hang(line, hanging)
        grid.append(line)
    return [*blocks, markdown_table(grid)]


def _hang(line: list[str], hanging: dict[int, tuple[str, int]]) -> None:
    while len(line) in hanging:
        value, left = hanging.pop(len(line))
        if left > 1:
            hanging[len(line)] = (value, left - 1)
        line.append(value)


def _lines(block: nodes.Element, depth: int) -> list[str]:
    out = []
    for child in block.children:
        if isinstance(child, nodes.line_block):
            out += _lines(child, depth + 1)
        elif isinstance(child, nodes.Element):
            out.append("  " * depth + _inline(child))
    return out


def _language(node: nodes.Element) -> str:
    classes = node.get("classes", [])
    language = str(classes[1]) if len(classes) > 1 and classes[0] == "code" else ""
    return language if language.replace("-", "").replace("+", "").isalnum() and language != "text" else ""


def _inline(node: nodes.Element) -> str:
    parts: list[str] = []
    for child in node.children:
        if isinstance(child, nodes.Text):
            parts.append(child.astext())
        elif isinstance(child, _SILENT):
            continue
        elif isinstance(child, nodes.Element):
            parts.append(_span(child))
    return " ".join("".join(parts).split())


def _span(node: nodes.Element) -> str:
    match node:
        case nodes.literal():
            return f"`{node.astext()}`"
        case nodes.math():
            return f"${node.astext()}$"
        case nodes.strong():
            return f"**{_inline(node)}**"
        case nodes.emphasis() | nodes.title_reference():
            return f"*{_inline(node)}*"
        case nodes.reference() if node.get("refuri", "").startswith(("http://", "https://", "mailto:")):
            text = _inline(node)
            return text if text == node["refuri"] or not text else f"[{text}]({node['refuri']})"
        case nodes.footnote_reference() | nodes.citation_reference():
            return f"[{node.astext()}]"
        case nodes.image():
            return str(node.get("alt", ""))
        case _:
            # An inline element keeps the spaces at its ends: its neighbours are the same sentence.
            return "".join(child.astext() if isinstance(child, nodes.Text) else _span(child) for child in node.children)


def _elements(node: nodes.Element) -> list[nodes.Element]:
    return [child for child in node.children if isinstance(child, nodes.Element)]
