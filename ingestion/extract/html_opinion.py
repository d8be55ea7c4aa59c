"""A second opinion on the document of a page: what trafilatura would leave out of it. It is the better one at telling pleas, teasers
and carts from text, and loses lists, quotes and answers; so it is asked only about parts that look like the former."""

import logging
import re
from collections.abc import Iterator
from copy import deepcopy
from enum import Enum
from itertools import islice

from lxml import etree, html

from ingestion.extract.html_tree import Element

logging.getLogger("trafilatura").setLevel(logging.CRITICAL)

# trafilatura takes seconds and hundreds of MB for pages of this size, and pages of this size are documents.
MAX_ELEMENTS = 10_000
# Where it keeps less of the words it has lost the document, and its opinion counts for nothing.
TRUSTED_SHARE = 0.5
# A part of which it keeps no more is one that it leaves out; its text ends where no more than so much follows.
LEFT_OUT_SHARE, END_SHARE = 0.1, 0.015
EXACT_CHARS = 12
_WORD = re.compile(r"\w+")


class Place(Enum):
    BEFORE, WITHIN, AFTER = range(3)


class Opinion:
    """Of every element below one: its letters, those that trafilatura keeps, and those that it keeps before it."""

    def __init__(self, root: Element, found: Element) -> None:
        pieces = [squeezed for piece in found.itertext() if (squeezed := _squeezed(piece))]
        self._pieces, self._text = frozenset(pieces), "".join(pieces)
        self.root = root
        self.elements = list(root.iter(etree.Element))  # held: the numbers are kept by the objects' identity
        self.letters = letters = dict.fromkeys(self.elements, 0)
        self.kept, self.before = kept, before = letters.copy(), letters.copy()
        seen = 0
        for element in self.elements:
            before[element] = seen
            for holder, piece in ((element, element.text), (element.getparent(), element.tail)):
                if holder in letters and (squeezed := _squeezed(piece)):
                    letters[holder] += len(squeezed)
                    if self._is_kept(squeezed):
                        kept[holder] += len(squeezed)
                        seen += len(squeezed)
        for element in reversed(self.elements[1:]):
            parent = element.getparent()
            letters[parent] += letters[element]
            kept[parent] += kept[element]

    def _is_kept(self, squeezed: str) -> bool:
        return squeezed in self._pieces or (len(squeezed) >= EXACT_CHARS and squeezed in self._text)

    @property
    def is_trusted(self) -> bool:
        return self.kept[self.root] >= TRUSTED_SHARE * self.letters[self.root]

    def left_out(self) -> Iterator[tuple[Element, Place]]:
        """The outermost parts it leaves out, each with where it stands to the text that is kept."""
        whole, inside = self.kept[self.root], set()
        end = END_SHARE * whole
        for element in self.elements[1:]:
            if element.getparent() in inside:
                inside.add(element)
            elif (letters := self.letters[element]) and self.kept[element] <= LEFT_OUT_SHARE * letters:
                inside.add(element)
                before = self.before[element]
                yield element, Place.BEFORE if before <= end else Place.AFTER if before >= whole - end else Place.WITHIN


def ask_trafilatura(region: Element) -> Opinion | None:
    """None when it finds nothing, or the region is too large to ask about."""
    if next(islice(region.iter(), MAX_ELEMENTS, None), None) is not None:
        return None
    from trafilatura import bare_extraction

    page = html.document_fromstring("<html><body></body></html>")
    page[0].append(deepcopy(region))
    try:
        found = bare_extraction(page, fast=True, include_comments=False, include_formatting=False, output_format="txt")
    except (RecursionError, etree.LxmlError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        return None  # its heuristics meet pages that nobody foresaw
    return Opinion(region, found.body) if found is not None and found.body is not None else None


def _squeezed(text: str | None) -> str:
    return "".join(_WORD.findall(text)).lower() if text else ""
