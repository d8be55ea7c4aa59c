"""The parts of a page in numbers: text, links and prose of every element, and what its names say."""

from collections.abc import Iterable

from lxml import etree

from ingestion.extract.html_names import Name, name_of
from ingestion.extract.html_tree import Element, drop

PROSE_CHARS = 40

FURNITURE = frozenset({"nav", "footer", "aside", "menu", "dialog"})
FURNITURE_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "dialog", "alertdialog", "toolbar"}
)
_NEVER_FURNITURE = "html body main article h1 h2 h3 h4 pre code table tbody tr td th p"
NEVER_FURNITURE = frozenset(_NEVER_FURNITURE.split())
# Blocks whose text outside of links counts as the document's, from so many characters on: an entry of a list or table may be short.
PROSE_TAGS = dict.fromkeys(("p", "blockquote", "div", "section", "article", "main", "body"), PROSE_CHARS) | dict.fromkeys(
    ("li", "dt", "dd", "td", "th", "pre"), 1
)
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
CONTAINERS = frozenset({"div", "section", "td", "article"})


class Measures:
    """Of every element below one: its characters, those in links, those of blocks long enough to be prose; and what its names say."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self.elements = list(root.iter(etree.Element))  # held: the numbers are kept by the objects' identity
        self.names = {element: name for element in self.elements if (name := _name(element))}
        self.text = text = dict.fromkeys(self.elements, 0)
        self.linked = linked = text.copy()
        self.links = links = text.copy()
        self.prose = prose = text.copy()
        self._gone: set[Element] = set()
        for element in reversed(self.elements):
            tag, chars = element.tag, text[element]
            if own := element.text:
                chars += len(own.strip())
                text[element] = chars
            if tag == "a":
                linked[element], links[element], prose[element] = chars, 1, 0
            elif chars and not prose[element] and tag in PROSE_TAGS and chars - linked[element] >= PROSE_TAGS[tag]:
                prose[element] = chars - linked[element]
            if element is root:
                break
            parent = element.getparent()
            text[parent] += chars + (len(tail.strip()) if (tail := element.tail) else 0)
            if linked[element]:
                linked[parent] += linked[element]
                links[parent] += links[element]
            if prose[element]:
                prose[parent] += prose[element]

    def named(self, name: int) -> list[Element]:
        return [element for element, names in self.names.items() if names & name]

    def drop(self, elements: Iterable[Element]) -> None:
        """The outermost of them; they come in the order of the page."""
        for element in self.outermost(elements):
            for above in element.iterancestors():
                for numbers in (self.text, self.linked, self.links, self.prose):
                    numbers[above] -= numbers[element]
                if above is self.root:
                    break
            drop(element)
            self._gone.add(element)

    def outermost(self, elements: Iterable[Element]) -> list[Element]:
        found: dict[Element, None] = {}
        for element in elements:
            if element not in self._gone and not any(above in found or above in self._gone for above in element.iterancestors()):
                found[element] = None
        return list(found)


def _name(element: Element) -> int:
    """What an element says of itself by tag, role, class and id."""
    tag, name = element.tag, 0
    if tag in FURNITURE or (tag == "header" and _is_menu_bar(element)):
        name = Name.FURNITURE
    elif tag in ("main", "article"):
        name = Name.MAIN if tag == "main" else Name.BODY
    if not (attributes := element.attrib):
        return name
    for attribute in ("class", "id"):
        if names := attributes.get(attribute):
            name |= name_of(names)
    if role := attributes.get("role"):
        name |= Name.FURNITURE if role in FURNITURE_ROLES else Name.MAIN if role == "main" else 0
    if attributes.get("itemprop") in ("articleBody", "mainContentOfPage"):
        name |= Name.MAIN
    if name & Name.FURNITURE and (tag in NEVER_FURNITURE or (tag == "aside" and name & Name.NOTE)):
        name &= ~Name.FURNITURE
    if name & Name.BODY and tag not in CONTAINERS:
        name &= ~Name.BODY
    return name


def _is_menu_bar(header: Element) -> bool:
    """The header of a page, not of an article; where it holds the page's heading it stays."""
    if header.getparent().tag in ("article", "section", "main"):
        return False
    return header.find(".//a") is not None and header.find(".//h1") is None
