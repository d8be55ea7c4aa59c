"""Paragraphs of slides: bullets and numbers as they are shown, with links and emphasis."""

from collections.abc import Iterator, Mapping

from ingestion.extract.blocks import BULLET, Writer
from ingestion.extract.docx_styles import number_of
from ingestion.extract.equations import M, latex
from ingestion.extract.inline import Run, inline_markdown
from ingestion.extract.numerals import formatted
from ingestion.extract.ooxml import A, R, Relation, alternatives
from ingestion.extract.xml_tree import Element, own_text

MATH = "{http://schemas.microsoft.com/office/drawing/2010/main}"
# Where a program keeps a line break in a run.
VERTICAL_TAB = "_x000B_"
MAX_DEPTH = 9
_FORMATS = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}
_ENDS = {"Period": ("", "."), "ParenR": ("", ")"), "ParenBoth": ("(", ")"), "Plain": ("", "")}


class TextReader:
    """One for each slide: links are its relations."""

    def __init__(self, relations: Mapping[str, Relation]) -> None:
        self._relations = relations

    def write(self, body: Element, out: Writer, *, bulleted: bool, plain: frozenset[int] = frozenset()) -> None:
        """`bulleted` says whether paragraphs have bullets that say nothing of it themselves, `plain` at which depths they have none."""
        counts: dict[int, int] = {}
        for paragraph in body.iter(f"{A}p"):
            text = inline_markdown(self.runs(paragraph))
            if not text:
                continue
            properties = paragraph.find(f"{A}pPr")
            depth = min(max(0, number_of(properties.get("lvl")) or 0), MAX_DEPTH) if properties is not None else 0
            for below in [each for each in counts if each > depth]:
                del counts[below]
            label = _label(properties, depth, counts, bulleted=bulleted and depth not in plain)
            if label:
                out.item(text, depth=depth, label=label)
            else:
                counts.pop(depth, None)
                out.paragraph(text)

    def line(self, body: Element) -> str:
        """All of it as one line, for titles and cells."""
        lines = (inline_markdown(self.runs(paragraph), plain=True) for paragraph in body.iter(f"{A}p"))
        return " ".join(" ".join(lines).split())

    def runs(self, paragraph: Element) -> list[Run]:
        return list(self._runs(paragraph))

    def _runs(self, paragraph: Element) -> Iterator[Run]:
        for child in alternatives(paragraph):
            tag = child.tag
            if tag == f"{A}r" or (tag == f"{A}fld" and not child.get("type", "").startswith(("slidenum", "datetime"))):
                yield self._run(child)
            elif tag == f"{A}br":
                yield Run("\n")
            elif tag in (f"{MATH}m", f"{M}oMath", f"{M}oMathPara"):
                for equation in child.iter(f"{M}oMath"):
                    yield Run(f" ${latex(equation)}$ ", raw=True)

    def _run(self, element: Element) -> Run:
        properties, text = element.find(f"{A}rPr"), element.find(f"{A}t")
        words = own_text(text).replace(VERTICAL_TAB, "\n").replace("\v", "\n") if text is not None else ""
        if properties is None:
            return Run(words)
        link = properties.find(f"{A}hlinkClick")
        relation = self._relations.get(link.get(f"{R}id", "")) if link is not None else None
        return Run(
            words,
            bold=properties.get("b") in ("1", "true"),
            italic=properties.get("i") in ("1", "true"),
            target=relation.target if relation is not None and relation.external else "",
        )


def _label(properties: Element | None, depth: int, counts: dict[int, int], *, bulleted: bool) -> str:
    if properties is not None:
        if properties.find(f"{A}buNone") is not None:
            return ""
        if (numbered := properties.find(f"{A}buAutoNum")) is not None:
            start = number_of(numbered.get("startAt")) or 1
            counts[depth] = counts[depth] + 1 if depth in counts else start
            return _numbered(counts[depth], numbered.get("type", "arabicPeriod"))
        if properties.find(f"{A}buChar") is not None or properties.find(f"{A}buBlip") is not None:
            return BULLET
    return BULLET if bulleted else ""


def _numbered(value: int, kind: str) -> str:
    name = next((known for known in _FORMATS if kind.startswith(known)), "")
    before, after = next((marks for end, marks in _ENDS.items() if kind.endswith(end)), ("", "."))
    return before + formatted(value, _FORMATS.get(name, "decimal")) + after
