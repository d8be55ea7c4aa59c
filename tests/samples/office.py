"""Office packages by code: only the parts that a reader looks at."""

from collections.abc import Mapping

from tests.samples.containers import zip_file

_BASE = "http://schemas.openxmlformats.org"
NAMESPACES = {
    "w": f"{_BASE}/wordprocessingml/2006/main",
    "a": f"{_BASE}/drawingml/2006/main",
    "p": f"{_BASE}/presentationml/2006/main",
    "c": f"{_BASE}/drawingml/2006/chart",
    "m": f"{_BASE}/officeDocument/2006/math",
    "r": f"{_BASE}/officeDocument/2006/relationships",
    "wp": f"{_BASE}/drawingml/2006/wordprocessingDrawing",
    "mc": f"{_BASE}/markup-compatibility/2006",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "v": "urn:schemas-microsoft-com:vml",
    "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
}
_DECLARED = " ".join(f'xmlns:{prefix}="{address}"' for prefix, address in NAMESPACES.items())
_RELATIONS = f"{_BASE}/package/2006/relationships"
_KIND = f"{_BASE}/officeDocument/2006/relationships"
WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
SLIDES_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
# name of a part -> (kind of relation, root element around its content)
_WORD_PARTS = {
    "styles": ("styles", "w:styles"),
    "numbering": ("numbering", "w:numbering"),
    "footnotes": ("footnotes", "w:footnotes"),
    "endnotes": ("endnotes", "w:endnotes"),
    "comments": ("comments", "w:comments"),
    "header1": ("header", "w:hdr"),
    "header2": ("header", "w:hdr"),
    "footer1": ("footer", "w:ftr"),
}


def xml(root: str, content: str) -> str:
    return f"<?xml version='1.0' encoding='UTF-8'?><{root} {_DECLARED}>{content}</{root}>"


def relations(entries: Mapping[str, tuple[str, str]]) -> str:
    """id -> (kind, target); an address is external."""
    lines = "".join(
        f'<Relationship Id="{identifier}" Type="{_KIND}/{kind}" Target="{target}" TargetMode="{_mode(target)}"/>'
        for identifier, (kind, target) in entries.items()
    )
    return f'<Relationships xmlns="{_RELATIONS}">{lines}</Relationships>'


def _mode(target: str) -> str:
    return "External" if ":" in target else "Internal"


def package(main: str, content_type: str, parts: Mapping[str, str]) -> bytes:
    types = f'<Types xmlns="{_BASE}/package/2006/content-types"><Override PartName="/{main}" ContentType="{content_type}"/></Types>'
    whole = {"[Content_Types].xml": types, "_rels/.rels": relations({"rId1": ("officeDocument", main)}), **parts}
    return zip_file({name: text.encode() for name, text in whole.items()})


def word(body: str, *, links: Mapping[str, tuple[str, str]] | None = None, extra: Mapping[str, str] | None = None, **parts: str) -> bytes:
    """`parts` are contents of styles, numbering, footnotes, endnotes, comments, header1, header2, footer1; `links` further relations."""
    known = {f"part-{name}": (_WORD_PARTS[name][0], f"{name}.xml") for name in parts}
    files = {f"word/{name}.xml": xml(_WORD_PARTS[name][1], content) for name, content in parts.items()}
    files["word/document.xml"] = xml("w:document", f"<w:body>{body}</w:body>")
    files["word/_rels/document.xml.rels"] = relations({**known, **(links or {})})
    return package("word/document.xml", WORD_TYPE, {**files, **(extra or {})})


def paragraph(text: str = "", *, style: str = "", properties: str = "", runs: str = "") -> str:
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    run = f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>' if text else ""
    return f"<w:p><w:pPr>{style}{properties}</w:pPr>{run}{runs}</w:p>"


def table(*rows: list[str]) -> str:
    """Cells are text, or whole <w:tc> elements."""
    lines = ("".join(cell if cell.startswith("<w:tc") else f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"


def cell(text: str, *, columns: int = 1, merge: str | None = None) -> str:
    span = f'<w:gridSpan w:val="{columns}"/>' if columns > 1 else ""
    down = "" if merge is None else f'<w:vMerge w:val="{merge}"/>' if merge else "<w:vMerge/>"
    return f"<w:tc><w:tcPr>{span}{down}</w:tcPr>{paragraph(text)}</w:tc>"


def slides(
    *bodies: str, order: list[int] | None = None, extra: Mapping[str, str] | None = None, **links: Mapping[str, tuple[str, str]]
) -> bytes:
    """A presentation; `bodies` are the shapes of slides, shown in `order` (positions from 0); `links` relations of "slide1", "slide2"…"""
    shown = order if order is not None else list(range(len(bodies)))
    files = {f"ppt/slides/slide{at}.xml": slide(body) for at, body in enumerate(bodies, start=1)}
    files |= {f"ppt/slides/_rels/{name}.xml.rels": relations(entries) for name, entries in links.items()}
    listed = "".join(f'<p:sldId id="{256 + at}" r:id="s{at}"/>' for at in shown)
    files["ppt/presentation.xml"] = xml("p:presentation", f"<p:sldIdLst>{listed}</p:sldIdLst>")
    files["ppt/_rels/presentation.xml.rels"] = relations({f"s{at}": ("slide", f"slides/slide{at + 1}.xml") for at in range(len(bodies))})
    return package("ppt/presentation.xml", SLIDES_TYPE, {**files, **(extra or {})})


def slide(shapes: str) -> str:
    return xml("p:sld", f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>")


def shape(*paragraphs: str, kind: str | None = None, index: str = "", at: tuple[int, int] | None = None) -> str:
    """`at` is the distance from the top and from the left in inches; paragraphs are text or whole <a:p> elements."""
    holder = "" if kind is None else f'<p:ph type="{kind}" idx="{index}"/>'
    place = "" if at is None else f'<a:xfrm><a:off x="{at[1] * 914_400}" y="{at[0] * 914_400}"/></a:xfrm>'
    text = "".join(each if each.startswith("<a:p") else f"<a:p><a:r><a:t>{each}</a:t></a:r></a:p>" for each in paragraphs)
    return f"<p:sp><p:nvSpPr><p:nvPr>{holder}</p:nvPr></p:nvSpPr><p:spPr>{place}</p:spPr><p:txBody>{text}</p:txBody></p:sp>"
