"""Where things stand on a PDF's page, and what follows from it for the text."""

import pytest

from tests.samples.pdf_layouts import (
    book_pdf,
    drawn,
    form_pdf,
    lines_at,
    mapped_pdf,
    outlined_pdf,
    rows_across_pdf,
    ruled_pdf,
    spaced_pdf,
    turned_pdf,
)

PROSE = [
    "The lectern is a reading desk with a",
    "slanted top, on which documents or",
    "books are placed as support for those",
    "who read aloud, as in a scripture or a",
    "lecture. It is usually attached to a",
    "stand or affixed to some other form of",
    "support, and to make reading easier it",
    "may have an adjustable height or slant.",
]
OTHER = [line.replace("e", "E") for line in PROSE]


def test_rows_across_two_columns_are_read_column_by_column(read):
    markdown = read(rows_across_pdf(PROSE, OTHER, title="A title across both columns of the page, long enough"), name="a.pdf").markdown
    assert markdown.split("\n\n") == ["A title across both columns of the page, long enough", " ".join(PROSE), " ".join(OTHER)]


def test_rows_of_a_list_in_two_columns_stay_rows(read):
    names, sizes = [f"part {number}" for number in range(9)], [f"{number} mm" for number in range(9)]
    assert "part 3 3 mm\npart 4 4 mm" in read(rows_across_pdf(names, sizes), name="a.pdf").markdown


def test_columns_that_were_drawn_one_after_the_other_stay_so(read):
    def page(canvas):
        lines_at(canvas, 60, 700, PROSE)
        lines_at(canvas, 320, 700, OTHER)

    assert read(drawn(page), name="a.pdf").markdown.replace("\n\n", " ") == " ".join([*PROSE, *OTHER])


@pytest.mark.parametrize("page", [0, 90, 180, 270])
@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_turned_text_is_read_from_its_top(read, degrees, page):
    lines = ["First line of turned text, and it is long", "second line of it that follows", "third line."]
    assert read(turned_pdf(degrees, lines, page=page), name="a.pdf").markdown.split() == " ".join(lines).split()


def test_an_outline_makes_headings(read):
    chapters = [(0, "1 The pump", "It pumps water all day."), (1, "1.1 The valve", "It opens."), (0, "2 The oil", "It is checked.")]
    markdown = read(outlined_pdf(chapters), name="a.pdf").markdown
    assert markdown.split("\n\n") == [
        *("# 1 The pump", "It pumps water all day.", "## 1.1 The valve", "It opens.", "# 2 The oil", "It is checked."),
    ]


def test_larger_lines_are_headings_where_there_is_no_outline(read):
    def page(canvas):
        lines_at(canvas, 60, 780, ["The manual"], size=20)
        lines_at(canvas, 60, 740, ["The pump"], size=14)
        lines_at(canvas, 60, 720, PROSE)
        lines_at(canvas, 60, 580, ["The valve"], size=14)
        lines_at(canvas, 60, 560, PROSE)

    prose = " ".join(PROSE)
    assert read(drawn(page), name="a.pdf").markdown.split("\n\n") == ["# The manual", "## The pump", prose, "## The valve", prose]


def test_bold_lines_with_space_above_are_headings(read):
    def page(canvas):
        lines_at(canvas, 60, 740, ["The pump"], font="Helvetica-Bold")
        lines_at(canvas, 60, 724, PROSE)
        lines_at(canvas, 60, 590, ["The valve"], font="Helvetica-Bold")
        lines_at(canvas, 60, 574, PROSE)

    prose = " ".join(PROSE)
    assert read(drawn(page), name="a.pdf").markdown.split("\n\n") == ["# The pump", prose, "# The valve", prose]


def test_a_page_that_is_mostly_large_has_no_headings(read):
    def page(canvas):
        lines_at(canvas, 60, 700, PROSE[:4], size=20)
        lines_at(canvas, 60, 500, OTHER)

    assert "#" not in read(drawn(page), name="a.pdf").markdown


def test_text_that_looks_like_markdown_is_no_heading(read):
    assert read(spaced_pdf("(# a comment in a listing) Tj"), name="a.pdf").markdown == "\\# a comment in a listing"


def test_running_headers_come_once_and_page_numbers_not_at_all(read):
    pages = [f"The text of chapter {'abcdefghij'[number]}, which differs." for number in range(10)]
    markdown = read(book_pdf(pages, header="Manual of the pump", footer="Page {page} of 10"), name="a.pdf").markdown
    assert markdown.count("Manual of the pump") == 1
    assert "Page" not in markdown
    assert all(page in markdown for page in pages)


def test_numbers_that_count_no_pages_are_kept(read):
    pages = [f"Dear customer {name}, this is what you owe us." for name in ("Ada", "Bob", "Cid", "Dan")]
    numbered = book_pdf(pages, header="Invoice 2026-{page}", footer="Total {page}00.50")
    markdown = read(numbered, name="a.pdf").markdown
    assert all(f"Invoice 2026-{number}" in markdown and f"Total {number}00.50" in markdown for number in range(1, 5))


def test_pages_of_one_line_each_keep_it(read):
    extracted = read(book_pdf(["A slide"] * 4), name="a.pdf")
    assert [span.page for span in extracted.pages] == [1, 2, 3, 4]


def test_a_word_broken_at_the_end_of_a_page_comes_whole(read):
    markdown = read(book_pdf(["The reader keeps his docu-", "ments on the lectern."]), name="a.pdf").markdown
    assert markdown == "The reader keeps his documents\n\non the lectern."


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["We describe how to read docu-", "ments aloud."], "We describe how to read documents aloud."),
        (["The trigger of the system is the trigger-", "system of them."], "The trigger of the system is the trigger-system of them."),
        (["She is a friend of Anne-", "Marie as well."], "She is a friend of Anne-Marie as well."),
    ],
)
def test_hyphens_at_line_ends(read, lines, text):
    assert read(book_pdf(["\n".join(lines)]), name="a.pdf").markdown == text


def test_ligatures_are_letters(read):
    meaning = {"a": "\ufb01", "b": "\ufb03", "c": "\ufb00"}
    assert read(mapped_pdf("ale obce stuc aled", meaning), name="a.pdf").markdown == "file offiffe stuff filed"


def test_arabic_is_read_in_logical_order_with_its_ligatures(read):
    # Drawn from the left as it is seen: teen, yeh, ... then alef; the ligature is one glyph with two letters.
    meaning = {"a": "\u0646", "b": "\u0644\u0625", "c": "\u0627"}
    assert read(mapped_pdf("abc", meaning), name="a.pdf").markdown == "\u0627\u0644\u0625\u0646"


SIGNS = [("Symbol", "\uf061", "α"), ("Wingdings", "\uf0a7", "-"), ("Courier", "\uf041", "A"), ("Courier", "\uf0b7", "-")]


@pytest.mark.parametrize(("font", "code", "text"), SIGNS)
def test_symbol_fonts(read, font, code, text):
    assert read(mapped_pdf("q is the sign here of it", {"q": code}, font=font), name="a.pdf").markdown.split()[0] == text


def test_missing_spaces_between_words_of_the_page(read):
    content = "(the trigger of a system is) Tj 0 -14 Td [(a trigger) -190 (system here)] TJ"
    assert read(spaced_pdf(content), name="a.pdf").markdown == "the trigger of a system is a trigger system here"


def test_letters_set_apart_are_words(read):
    assert read(spaced_pdf("5 Tc (Spaced Title Here) Tj 0 Tc 0 -14 Td (normal text) Tj"), name="a.pdf").markdown.startswith(
        "Spaced Title Here"
    )


def test_bold_by_double_drawing_is_read_once(read):
    assert (
        read(spaced_pdf("(Drawn twice for weight) Tj 0.3 0 Td (Drawn twice for weight) Tj"), name="a.pdf").markdown
        == "Drawn twice for weight"
    )


TABLE = [["Name", "Size", "Colour"], ["small desk", "10", "red"], ["large desk", "200", "blue"]]
MARKDOWN = "| Name | Size | Colour |\n| --- | --- | --- |\n| small desk | 10 | red |\n| large desk | 200 | blue |"


@pytest.mark.parametrize("degrees", [0, 90])
@pytest.mark.parametrize("shades", [False, True])
def test_ruled_tables(read, shades, degrees):
    assert read(ruled_pdf(TABLE, shades=shades, degrees=degrees), name="a.pdf").markdown == MARKDOWN


def test_a_cell_over_all_columns_is_the_first_of_its_row(read):
    rows = [["Furniture", "", ""], *TABLE]
    assert read(ruled_pdf(rows, spans=[0]), name="a.pdf").markdown.startswith(
        "| Furniture |  |  |\n| --- | --- | --- |\n| Name | Size | Colour |"
    )


def test_words_that_run_over_a_rule_are_not_cut(read):
    rows = [["Name", "Size"], ["a very long name that runs over", "10"], ["short", "20"]]
    markdown = read(ruled_pdf(rows, width=140), name="a.pdf").markdown
    assert "| a very long name that runs over | 10 |" in markdown


def test_what_was_filled_in_follows_the_text_of_its_page(read):
    content = form_pdf("An application for a lectern.", {"Applicant": "Ada Lovelace", "City": "London"}, note="Urgent, please")
    assert read(content, name="a.pdf").markdown == (
        "An application for a lectern.\n\n- Applicant: Ada Lovelace\n- City: London\n- Urgent, please"
    )
