"""OpenDocument texts and presentations."""

import pytest

from config.errors import ExtractionError
from tests.samples.books import DECLARED, odf
from tests.samples.containers import zip_file


def level(depth: int, format: str, *, shown: int = 1) -> str:
    number = f'style:num-format="{format}" style:num-suffix="." text:display-levels="{shown}"'
    return f'<text:list-level-style-number text:level="{depth}" {number}/>'


def test_headings_titles_and_their_numbers(read):
    outline = "".join(
        f'<text:outline-level-style text:level="{depth}" style:num-format="1" text:display-levels="{depth}"/>' for depth in (1, 2)
    )
    template = f"<office:styles><text:outline-style>{outline}</text:outline-style></office:styles>"
    automatic = '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
    body = (
        '<text:p text:style-name="P1">The whole</text:p><text:h text:outline-level="1">One</text:h>'
        '<text:h text:outline-level="2">Below</text:h><text:p>Some <text:s text:c="3"/>words<text:line-break/>in lines</text:p>'
    )
    extracted = read(odf(body, template=template, automatic=automatic), name="a.odt")
    assert extracted.markdown.split("\n\n") == ["# The whole", "## 1 One", "### 1.1 Below", "Some words\nin lines"]
    assert (extracted.title, extracted.media_type) == ("The whole", "application/vnd.oasis.opendocument.text")


def test_lists(read):
    automatic = f'<text:list-style style:name="L1">{level(1, "1")}{level(2, "1", shown=2)}</text:list-style>'
    inner = "<text:list><text:list-item><text:p>below</text:p></text:list-item></text:list>"
    body = (
        f'<text:list text:style-name="L1"><text:list-item><text:p>one</text:p>{inner}</text:list-item></text:list><text:p>between</text:p>'
        '<text:list text:style-name="L1" text:continue-numbering="true"><text:list-item><text:p>two</text:p></text:list-item></text:list>'
        '<text:list text:style-name="L2"><text:list-item><text:p>point</text:p></text:list-item></text:list>'
    )
    assert read(odf(body, automatic=automatic), name="a.odt").markdown == "1. one\n   - 1.1. below\n\nbetween\n\n2. two\n- point"


def test_tables_with_merged_cells(read):
    def cell(text: str, attributes: str = "") -> str:
        return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"

    covered = "<table:covered-table-cell/>"
    rows = (
        cell("a") + cell("both", 'table:number-columns-spanned="2"') + covered,
        cell("tall", 'table:number-rows-spanned="2"') + cell("b") + cell("c"),
        covered + cell("same", 'table:number-columns-repeated="2"'),
    )
    body = f"<table:table>{''.join(f'<table:table-row>{row}</table:table-row>' for row in rows)}</table:table>"
    lines = ["| a | both | both |", "| --- | --- | --- |", "| tall | b | c |", "| tall | same | same |"]
    assert read(odf(body), name="a.odt").markdown.split("\n") == lines


def test_what_stands_beside_the_text(read):
    automatic = (
        '<style:style style:name="T1" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>'
        '<style:style style:name="T2" style:family="text"><style:text-properties text:display="none"/></style:style>'
    )
    proof = "<text:note-body><text:p>Proof.</text:p></text:note-body>"
    note = f'<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation>{proof}</text:note>'
    frame = "<draw:frame><draw:text-box><text:p>In the box.</text:p></draw:text-box><svg:desc>A lectern of oak</svg:desc></draw:frame>"
    remark = "<office:annotation><dc:creator>Ada</dc:creator><text:p>Sure?</text:p></office:annotation>"
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>old</text:p></text:deletion></text:changed-region>"
        "</text:tracked-changes><text:table-of-content><text:p>One 3</text:p></text:table-of-content>"
        f'<text:p>A <text:span text:style-name="T1">bold</text:span> claim{note} <text:span text:style-name="T2">unseen</text:span>'
        f'<text:a xlink:href="https://a.example/">here</text:a>{remark}</text:p><text:p>Box:{frame}</text:p>'
    )
    masters = (
        "<office:master-styles><style:master-page><style:header><text:p>Report</text:p></style:header><style:footer><text:p>Page "
        "<text:page-number>3</text:page-number></text:p></style:footer></style:master-page></office:master-styles>"
    )
    file = odf(body, automatic=automatic, template=masters)
    assert read(file, name="a.odt").markdown.split("\n\n") == [
        "Report",
        "A **bold** claim[^1] [here](https://a.example/)",
        "Box: A lectern of oak",
        "In the box.",
        "[^1]: Proof.",
    ]
    assert "[Comment by Ada: Sure?]" in read(file, name="a.odt", comments=True).markdown


def test_slides(read):
    def frame(kind: str, text: str) -> str:
        return f'<draw:frame presentation:class="{kind}"><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>'

    first = frame("title", "First") + frame("outline", "Words.") + f"<presentation:notes>{frame('notes', 'Say this.')}</presentation:notes>"
    extracted = read(
        odf(f"<draw:page>{first}</draw:page><draw:page>{frame('title', 'Second')}</draw:page>", kind="presentation"), name="a.odp"
    )
    assert extracted.markdown.split("\n\n") == ["## First", "Words.", "Notes: Say this.", "## Second"]
    assert [span.page for span in extracted.pages] == [1, 2]


def test_a_password_is_told(read):
    with pytest.raises(ExtractionError, match="needs a password"):
        read(odf("<text:p>x</text:p>", manifest="<manifest:encryption-data/>"), name="a.odt")


def test_entities_stay_unresolved(read):
    file = odf("<text:p>Kept are &#169; these words</text:p>")
    assert "Kept are © these words" in read(file, name="a.odt").markdown
    bomb = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
    opened = f"{bomb}<office:document-content {DECLARED}><office:body><office:text>"
    content = f"{opened}<text:p>Kept are &b;&c;these words</text:p></office:text></office:body>"
    evil = zip_file(
        {"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": f"{content}</office:document-content>".encode()}
    )
    assert read(evil, name="a.odt").markdown == "Kept are these words"
