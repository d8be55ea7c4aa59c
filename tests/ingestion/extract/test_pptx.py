"""Presentations: slides in the order in which they are shown, their shapes in the order in which they are read."""

from tests.samples.office import relations, shape, slide, slides, xml


def bullet(text: str, *, level: int = 0, mark: str = "") -> str:
    return f'<a:p><a:pPr lvl="{level}">{mark}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'


def test_slides_are_pages_in_their_order(read):
    extracted = read(slides(shape("Second", kind="title"), shape("First", kind="ctrTitle") + shape("Words."), order=[1, 0]), name="a.pptx")
    assert extracted.markdown == "## First\n\nWords.\n\n## Second"
    assert [(span.page, extracted.markdown[span.start : span.end]) for span in extracted.pages] == [
        (1, "## First\n\nWords."),
        (2, "## Second"),
    ]
    assert extracted.title == "First"


def test_shapes_are_read_from_the_top(read):
    body = shape("Below", at=(4, 1)) + shape("Right", at=(2, 5)) + shape("Left", at=(2, 1)) + shape("The title", kind="title", at=(0, 0))
    assert read(slides(body), name="a.pptx").markdown.split("\n\n") == ["## The title", "Left", "Right", "Below"]


def test_placeholders_stand_where_their_layout_puts_them(read):
    layout = slide(shape("", kind="body", index="1", at=(5, 0)))
    made_from = {"r1": ("slideLayout", "../slideLayouts/slideLayout1.xml")}
    deck = slides(
        shape("under it", kind="body", index="1") + shape("Above", at=(1, 0)),
        slide1=made_from,
        extra={"ppt/slideLayouts/slideLayout1.xml": layout},
    )
    assert read(deck, name="a.pptx").markdown == "## Slide 1\n\nAbove\n\n- under it"


def test_bullets_and_numbers(read):
    body = shape(
        bullet("no bullet", mark="<a:buNone/>"),
        "point",
        bullet("below", level=1),
        bullet("three", mark='<a:buAutoNum type="arabicPeriod" startAt="3"/>'),
        bullet("four", mark='<a:buAutoNum type="arabicPeriod" startAt="3"/>'),
        bullet("letter", level=1, mark='<a:buAutoNum type="alphaLcParenR"/>'),
        kind="body",
    )
    assert read(slides(body), name="a.pptx").markdown == "\n".join(
        ["## Slide 1\n\nno bullet\n\n- point", "  - below", "3. three", "4. four", "   - a) letter"]
    )


def test_tables_and_groups(read):
    def cell(text: str, attributes: str = "") -> str:
        return f"<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    rows = (
        cell("a") + cell("both", 'gridSpan="2"') + cell("", 'hMerge="1"'),
        cell("tall", 'rowSpan="2"') + cell("b") + cell("c"),
        cell("", 'vMerge="1"') + cell("d") + cell("e"),
    )
    table = f"<p:graphicFrame><a:tbl>{''.join(f'<a:tr>{row}</a:tr>' for row in rows)}</a:tbl></p:graphicFrame>"
    group = f"<p:grpSp><p:grpSp>{shape('within a group')}</p:grpSp></p:grpSp>"
    assert read(slides(table + group), name="a.pptx").markdown.split("\n\n")[1:] == [
        "| a | both | both |\n| --- | --- | --- |\n| tall | b | c |\n| tall | d | e |",
        "within a group",
    ]


def test_notes_footers_and_comments(read):
    notes = slide(shape("Say this.", kind="body", index="1") + shape("7", kind="sldNum", index="2"))
    linked = {"n": ("notesSlide", "../notesSlides/notesSlide1.xml"), "c": ("comments", "../comments/comment1.xml")}
    footer = shape("Lectern Ltd", kind="ftr") + shape("2", kind="sldNum")
    deck = slides(
        shape("One", kind="title") + footer,
        shape("Two", kind="title") + footer,
        slide1=linked,
        extra={
            "ppt/notesSlides/notesSlide1.xml": notes,
            "ppt/notesSlides/_rels/notesSlide1.xml.rels": relations({}),
            "ppt/comments/comment1.xml": xml("p:cmLst", '<p:cm authorId="0" dt="2026-01-02T03:04:05"><p:text>Sure?</p:text></p:cm>'),
            "ppt/commentAuthors.xml": xml("p:cmAuthorLst", '<p:cmAuthor id="0" name="Ada"/>'),
        },
    )
    assert read(deck, name="a.pptx").markdown.split("\n\n") == ["## One", "Notes: Say this.", "## Two", "Lectern Ltd"]
    assert "[Comment by Ada, 2026-01-02T03:04: Sure?]" in read(deck, name="a.pptx", comments=True).markdown


def test_hidden_and_damaged_slides_are_told(read):
    hidden = slide(shape("Later", kind="title")).replace("<p:sld ", '<p:sld show="0" ')
    deck = slides("", "", shape("Last", kind="title"), extra={"ppt/slides/slide1.xml": hidden, "ppt/slides/slide2.xml": "<p:sld"})
    assert read(deck, name="a.pptx").markdown.split("\n\n") == [
        "## Later (hidden)",
        "## Slide 2",
        "This slide is damaged and could not be read.",
        "## Last",
    ]


def test_more_slides_than_are_read(read):
    extracted = read(slides(*[shape(f"Slide of number {number}", kind="title") for number in range(5)]), name="a.pptx", max_pages=2)
    assert extracted.markdown == "## Slide of number 0\n\n## Slide of number 1"
    assert extracted.truncated
    assert "first 2 of 5 slides" in extracted.warnings[0]
