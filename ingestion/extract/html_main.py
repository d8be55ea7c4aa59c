"""Which part of a page is the document. The page's own words decide first (main, article, names), then where its prose stands;
navigation goes, known by element, role, name or by being a list of links, unless too little would be left. Where a part of the rest
may be a plea or a teaser, trafilatura has a say."""

from collections.abc import Iterator

from ingestion.extract.html_doubts import gates, is_doubtful, left_out, repeated
from ingestion.extract.html_measures import HEADINGS, PROSE_CHARS, Measures
from ingestion.extract.html_names import Name, starts_teaser
from ingestion.extract.html_tree import Element, text_of

# A part that calls itself the document holds at least this share of the page's prose; else it is one of several.
MAIN_SHARE, NAMED_SHARE, INNER_SHARE = 0.3, 0.5, 0.85
# Around the document stand teasers and pleas: the smallest element with so much of the prose, and so much of all text.
PROSE_SHARE, TEXT_SHARE = 0.97, 0.7
# Below this share of the page, the names of furniture are not used in their usual sense.
MIN_KEPT_SHARE = 0.1
# Lists of links are furniture beside a text, and the document where there is hardly any.
MIN_PROSE, MIN_LINKS, LINK_SHARE, LIST_SHARE = 400, 4, 0.7, 0.3
TEASER_SHARE, TEASER_LINKS, SHORT_TEASER, TEASER_LINK_CHARS = 0.3, 0.3, 200, 150
NEVER_SPLIT = frozenset({"p", "table", "tbody", "tr", "ul", "ol", "dl", "pre", "blockquote"})


def main_text(tree: Element) -> Element:
    """The element that holds the document; furniture in it is dropped from the tree."""
    body = tree.find("body")
    measures = Measures(tree if body is None else body)
    _drop_furniture(measures)
    region, claimed = _region(measures)
    if measures.prose[region] >= MIN_PROSE:
        measures.drop(_link_lists(region, measures))
        measures.drop(_teasers(region, measures))
        measures.drop(gates(region, measures))
        # Of pages with code trafilatura loses too much to be asked, and what they repeat they mean.
        if next(region.iter("pre", "code"), None) is None:
            measures.drop(repeated(region, measures))
            if not claimed or is_doubtful(region, measures):
                measures.drop(left_out(region, measures))
    return region


def _drop_furniture(measures: Measures) -> None:
    # Consent dialogs hold much prose, often more than the page.
    measures.drop(each for each in measures.named(Name.CONSENT) if each.find(".//main") is None)
    text, whole = measures.text, measures.text[measures.root]
    # A name like "page-with-sidebar" may stand on the element around everything.
    found = measures.outermost(each for each in measures.named(Name.FURNITURE) if text[each] <= whole // 2)
    if whole - sum(text[each] for each in found) >= MIN_KEPT_SHARE * whole:
        measures.drop(found)


def _region(measures: Measures) -> tuple[Element, bool]:
    """With whether the page itself says so."""
    text, prose = measures.text, measures.prose
    region, claimed = measures.root, False
    for element in measures.named(Name.MAIN | Name.BODY):
        share = INNER_SHARE if claimed else MAIN_SHARE if measures.names[element] & Name.MAIN else NAMED_SHARE
        if prose[element] and prose[element] >= share * prose[region] and region in element.iterancestors():
            region, claimed = element, True
    while True:
        child = max(region, key=prose.__getitem__, default=None)
        if child is None or child.tag in NEVER_SPLIT:
            return region, claimed
        if prose[child] < PROSE_SHARE * prose[region] or text[child] < TEXT_SHARE * text[region]:
            return region, claimed
        # What comes before may be the introduction; what comes after seldom is more than a plea or a teaser.
        if claimed and sum(prose[each] for each in child.itersiblings(preceding=True)) > PROSE_CHARS:
            return region, claimed
        region = child


def _link_lists(region: Element, measures: Measures) -> list[Element]:
    text, linked, links, most = measures.text, measures.linked, measures.links, LIST_SHARE * measures.text[region]
    return [
        element
        for element in region.iterdescendants("ul", "div", "section")
        if links[element] >= MIN_LINKS and linked[element] > LINK_SHARE * text[element] and text[element] <= most
        if element.find(".//table") is None
    ]


def _teasers(region: Element, measures: Measures) -> Iterator[Element]:
    """Parts under headings such as "Related articles"."""
    most = TEASER_SHARE * measures.text[region]
    for heading in region.iterdescendants(*HEADINGS[1:]):
        if not starts_teaser(text_of(heading)):
            continue
        part = heading
        while (above := part.getparent()) is not region and measures.text[above] <= most:
            if any(measures.text[each] for each in part.itersiblings(preceding=True)):
                break
            part = above
        chars, links = measures.text[part], measures.links[part]
        if part is not heading and (measures.linked[part] > TEASER_LINKS * chars or chars <= max(SHORT_TEASER, TEASER_LINK_CHARS * links)):
            yield part
