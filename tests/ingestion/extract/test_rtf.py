"""RTF: styles, lists, tables, notes and the ways in which it writes characters."""

import pytest

from config.errors import ExtractionError
from tests.samples.books import rtf


def test_headings_paragraphs_and_emphasis(read):
    body = (
        r"{\info{\title Ours \u8212 ?}{\author Ada}}\pard\s3 The whole\par\pard\s1 One\par\pard\s2 Two\par"
        r"\pard\plain Some {\b bold} and \i slanted\i0  words\line in {\v unseen}lines.\par"
    )
    extracted = read(rtf(body), name="a.rtf")
    assert extracted.markdown.split("\n\n") == ["# The whole", "## One", "### Two", "Some **bold** and *slanted* words\nin lines."]
    assert (extracted.title, extracted.metadata) == ("The whole", {"title": "Ours —", "author": "Ada"})


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"caf\'e9 \u945?\u946\'3f", "café αβ"),
        (r"\f1\'cf\'f0\'e8\'e2\'e5\'f2", "Привет"),
        (r"\f2\'93\'fa\'96\'7b", "日本"),
        (r"\u-10179?\u-8704?", "\U0001f600"),
        (r"\uc2\u8212ab-\uc0\u8212-", "—-—-"),
        (r"non\~breaking\_hyphen\-ated \{brace\} \ldblquote x\rdblquote", "non breaking-hyphenated {brace} “x”"),
        (r"{\upr{ansi}{\*\ud{unicode}}} text", "unicode text"),
    ],
)
def test_characters(read, written, text):
    assert read(rtf(rf"\pard Here it stands: {written}\par"), name="a.rtf").markdown == f"Here it stands: {text}"


def test_lists_have_the_labels_that_were_shown(read):
    body = (
        r"\pard{\listtext 1.\tab}\ilvl0 one\par{\listtext a)\tab}\ilvl1 below\par\pard{\listtext 2.\tab}two\par"
        r"\pard{\listtext\'b7\tab}point\par\pard text\par"
    )
    assert read(rtf(body), name="a.rtf").markdown == "1. one\n   - a) below\n2. two\n- point\n\ntext"


def test_tables_with_merged_cells(read):
    head = r"\trowd\cellx1\clmgf\cellx2\clmrg\cellx3\pard\intbl a\cell both\cell\cell\row"
    first = r"\trowd\clvmgf\cellx1\cellx2\cellx3\pard\intbl tall\cell b\cell c\cell\row"
    second = r"\trowd\clvmrg\cellx1\cellx2\cellx3\pard\intbl\cell d\par d\cell {x\nestcell y\nestcell}{\nestrow}\cell\row"
    assert read(rtf(head + first + second + r"\pard after\par"), name="a.rtf").markdown == "\n".join(
        ["| a | both | both |", "| --- | --- | --- |", "| tall | b | c |", "| tall | d d | x, y, |", "", "after"]
    )


def test_notes_links_margins_and_what_is_no_text(read):
    body = (
        r"{\header Annual report\par}{\footer Page 3\par}{\*\generator Some Word;}{\*\unknown {deep} text}"
        r"\pard A claim{\footnote\pard Its \b proof\b0 .\par} with {\field{\*\fldinst{HYPERLINK "
        r'"https://a.example/"}}{\fldrslt a link}}.{\pict\pngblip 89504e47}{\object{\*\objdata 0105}{\result shown}}\par'
        r"{\shp{\*\shpinst{\sp{\sn prop}{\sv 1}}{\shptxt In the box.\par}}{\shprslt again}}"
    )
    assert read(rtf(body), name="a.rtf").markdown.split("\n\n") == [
        "Annual report",
        "A claim[^1] with [a link](https://a.example/).shown",
        "In the box.",
        "[^1]: Its **proof**.",
    ]


def test_binary_data_is_passed_over(read):
    body = rtf(r"\pard what is before {\pict\bin7 ").removesuffix(b"}") + b"{{{}\\\\x} after\\par}"
    assert read(body, name="a.rtf").markdown == "what is before after"


def test_hostile_nesting_is_refused(read):
    with pytest.raises(ExtractionError, match="nested too deeply"):
        read(rtf("{" * 100_000), name="a.rtf")


@pytest.mark.parametrize("body", [r"\pard no end", r"}}}}\pard after too many ends\par", r"\pard \'zz\u\uc-5\bin-3 still read\par", "\\"])
def test_damage_costs_only_what_is_damaged(read, body):
    assert read(rtf(r"\pard The first of all\par" + body), name="a.rtf").markdown.startswith("The first of all")


def test_reading_stops_where_enough_was_read(read):
    extracted = read(rtf(r"\pard some words\par" * 5_000), name="a.rtf", max_chars=500)
    assert extracted.truncated
    assert len(extracted.markdown) <= 500
