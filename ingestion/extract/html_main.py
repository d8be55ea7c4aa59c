"""Which part of a page is the document. The page's own words decide first (main, article, names), then where its prose stands;
navigation goes, known by element, role, name or by being a list of links, unless too little would be left."""

from collections.abc import Iterable, Iterator

from lxml import etree

from ingestion.extract.html_names import Name, name_of, starts_teaser
from ingestion.extract.html_tree import Element, drop, text_of

# A part that calls itself the document holds at least this share of the page's prose; else it is one of several.
MAIN_SHARE, NAMED_SHARE, INNER_SHARE = 0.3, 0.5, 0.85
# Around the document stand teasers and pleas: the smallest element with so much of the prose, and so much of all text.
PROSE_SHARE, TEXT_SHARE = 0.97, 0.7
# Below this share of the page, the names of furniture are not used in their usual sense.
MIN_KEPT_SHARE = 0.1
# Lists of links are furniture beside a text, and the document where there is hardly any.
MIN_PROSE, MIN_LINKS, LINK_SHARE, LIST_SHARE = 400, 4, 0.7, 0.3
TEASER_SHARE, TEASER_LINKS, SHORT_TEASER = 0.3, 0.3, 200
PROSE_CHARS = 40

FURNITURE = frozenset({"nav", "footer", "aside", "menu", "dialog"})
FURNITURE_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "dialog", "alertdialog", "toolbar"}
)
_NEVER_FURNITURE = "html body main article h1 h2 h3 h4 pre code table tbody tr td th p"
NEVER_FURNITURE = frozenset(_NEVER_FURNITURE.split())
NEVER_SPLIT = frozenset({"p", "table", "tbody", "tr", "ul", "ol", "dl", "pre", "blockquote"})
# Blocks whose text outside of links counts as the document's, from so many characters on: an entry of a list or table may be short.
PROSE_TAGS = dict.fromkeys(("p", "blockquote", "div", "section", "article", "main", "body"), PROSE_CHARS) | dict.fromkeys(
    ("li", "dt", "dd", "td", "th", "pre"), 1
)
CONTAINERS = frozenset({"div", "section", "td", "article"})


class _Measures:
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


def main_text(tree: Element) -> Element:
    """The element that holds the document; furniture in it is dropped from the tree."""
    body = tree.find("body")
    measures = _Measures(tree if body is None else body)
    _drop_furniture(measures)
    region = _region(measures)
    if measures.prose[region] >= MIN_PROSE:
        measures.drop(_link_lists(region, measures))
        measures.drop(_teasers(region, measures))
    return region


def _drop_furniture(measures: _Measures) -> None:
    # Consent dialogs hold much prose, often more than the page.
    measures.drop(each for each in measures.named(Name.CONSENT) if each.find(".//main") is None)
    text, whole = measures.text, measures.text[measures.root]
    # A name like "page-with-sidebar" may stand on the element around everything.
    found = measures.outermost(each for each in measures.named(Name.FURNITURE) if text[each] <= whole // 2)
    if whole - sum(text[each] for each in found) >= MIN_KEPT_SHARE * whole:
        measures.drop(found)


def _region(measures: _Measures) -> Element:
    text, prose = measures.text, measures.prose
    region, claimed = measures.root, False
    for element in measures.named(Name.MAIN | Name.BODY):
        share = INNER_SHARE if claimed else MAIN_SHARE if measures.names[element] & Name.MAIN else NAMED_SHARE
        if prose[element] and prose[element] >= share * prose[region] and region in element.iterancestors():
            region, claimed = element, True
    while True:
        child = max(region, key=prose.__getitem__, default=None)
        if child is None or child.tag in NEVER_SPLIT:
            return region
        if prose[child] < PROSE_SHARE * prose[region] or text[child] < TEXT_SHARE * text[region]:
            return region
        # What comes before may be the introduction; what comes after seldom is more than a plea or a teaser.
        if claimed and sum(prose[each] for each in child.itersiblings(preceding=True)) > PROSE_CHARS:
            return region
        region = child


def _link_lists(region: Element, measures: _Measures) -> list[Element]:
    text, linked, links, most = measures.text, measures.linked, measures.links, LIST_SHARE * measures.text[region]
    return [
        element
        for element in region.iterdescendants("ul", "div", "section")
        if links[element] >= MIN_LINKS and linked[element] > LINK_SHARE * text[element] and text[element] <= most
        if element.find(".//table") is None
    ]


def _teasers(region: Element, measures: _Measures) -> Iterator[Element]:
    """Parts under headings such as "Related articles"."""
    most = TEASER_SHARE * measures.text[region]
    for heading in region.iterdescendants("h2", "h3", "h4", "h5", "h6"):
        if not starts_teaser(text_of(heading)):
            continue
        part = heading
        while (above := part.getparent()) is not region and measures.text[above] <= most:
            if any(measures.text[each] for each in part.itersiblings(preceding=True)):
                break
            part = above
        if part is not heading and (measures.linked[part] > TEASER_LINKS * measures.text[part] or measures.text[part] <= SHORT_TEASER):
            yield part


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
