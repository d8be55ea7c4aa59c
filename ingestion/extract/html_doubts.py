"""Parts inside of the document that may not belong to it: what is shown twice, doors closed to guests, pleas, teasers, carts."""

from collections.abc import Iterable

from lxml import etree

from ingestion.extract.html_measures import HEADINGS, PROSE_CHARS, Measures
from ingestion.extract.html_names import Door, Name, door_of
from ingestion.extract.html_opinion import Place, ask_trafilatura
from ingestion.extract.html_tree import Element, text_of

# Larger parts, alone or together, are not left out on trafilatura's word: it also stops in the middle of texts.
PART_SHARE, SHORT_CHARS, HEAD_LINKS = 0.35, 200, 0.25
# Texts of this length are documents.
MAX_CHARS = 200_000
MIN_REPEATED, GATE_CHARS, MIN_CARDS = 200, 400, 2
PARTS = frozenset({"div", "section", "article", "aside", "form", "figure", "address", "header"})
GATE_BLOCKS = frozenset({"p", "div", "li", "td", "section", "aside"})


def repeated(region: Element, measures: Measures) -> list[Element]:
    """Parts that the page holds a second time, for narrow or for wide windows."""
    first: dict[tuple[int, ...], Element] = {}
    texts: dict[tuple[int, ...], set[str]] = {}
    found = []
    for element in region.iterdescendants("div", "section", "article"):
        chars = measures.text[element]
        if chars < MIN_REPEATED or not measures.prose[element] or chars == measures.text[element.getparent()]:
            continue
        numbers = (chars, measures.linked[element], measures.links[element], measures.prose[element])
        if numbers not in first:
            first[numbers] = element
            continue
        known, text = texts.setdefault(numbers, {text_of(first[numbers])}), text_of(element)
        if text in known:
            found.append(element)
        known.add(text)
    return found


def gates(region: Element, measures: Measures) -> list[Element]:
    """ "Log in or register to answer": short blocks with links to both."""
    doors: dict[Element, int] = {}
    for link in region.iter("a"):
        if door := door_of(link.get("href") or ""):
            block = next((above for above in link.iterancestors() if above.tag in GATE_BLOCKS), region)
            doors[block] = doors.get(block, 0) | door
    return [
        block
        for block, door in doors.items()
        if door == Door.BOTH and measures.text[block] <= GATE_CHARS and next(block.iter(*HEADINGS), None) is None
    ]


def is_doubtful(region: Element, measures: Measures) -> bool:
    """Whether there is anything in it that trafilatura could tell from text: buttons, cards, scraps before or after the prose."""
    if any(each.tag == "a" and region in each.iterancestors() for each in measures.named(Name.BUTTON)):
        return True
    if sum(map(_leads_elsewhere, region.iter(*HEADINGS))) >= MIN_CARDS:
        return True
    inside = [each for each in region.iterdescendants(etree.Element) if measures.text.get(each)]
    return _has_scraps(inside, measures, linked=True) or _has_scraps(reversed(inside), measures, linked=False)


def _leads_elsewhere(heading: Element) -> bool:
    link = next(heading.iter("a"), None)
    return link is not None and not (link.get("href") or "#").startswith("#") and text_of(link) == text_of(heading)


def _has_scraps(elements: Iterable[Element], measures: Measures, *, linked: bool) -> bool:
    for element in elements:
        if element.tag not in PARTS:
            if measures.prose[element] >= PROSE_CHARS:
                return False
        elif not measures.prose[element] and (measures.linked[element] or not linked) and not _is_told_apart(element):
            return True
    return False


def left_out(region: Element, measures: Measures) -> list[Element]:
    """Of what trafilatura leaves out: pleas, which hold a button, and what stands before and after its text."""
    opinion = ask_trafilatura(region) if measures.text[region] <= MAX_CHARS else None
    if opinion is None or not opinion.is_trusted:
        return []
    text, most = measures.text, PART_SHARE * measures.text[region]
    parts = {Place.BEFORE: [], Place.WITHIN: [], Place.AFTER: []}
    for element, place in opinion.left_out():
        if element.tag in PARTS and text[element] <= most and _is_foreign(element, place, measures):
            parts[place].append(element)
    if sum(text[each] for each in parts[Place.AFTER]) > most:
        parts[Place.AFTER] = []  # it has stopped too early
    return [*parts[Place.BEFORE], *parts[Place.WITHIN], *parts[Place.AFTER]]


def _is_foreign(part: Element, place: Place, measures: Measures) -> bool:
    text, links = measures.text[part], measures.links[part]
    if any(measures.names.get(link, 0) & Name.BUTTON for link in part.iter("a")):
        return True
    if place is Place.BEFORE:
        return links > 0 and measures.linked[part] >= HEAD_LINKS * text and not _is_told_apart(part)
    return place is Place.AFTER and not _is_heading(part) and (links > 0 or not measures.prose[part] or text <= SHORT_CHARS)


def _is_told_apart(part: Element) -> bool:
    """A heading or a list of contents says what it is."""
    return next(part.iter(*HEADINGS, "ul", "ol", "dl"), None) is not None


def _is_heading(part: Element) -> bool:
    return any(text_of(each) == text_of(part) for each in part.iter(*HEADINGS))
