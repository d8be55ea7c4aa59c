"""The picture of figures over time: valid, escaped, and every value where it belongs."""

import xml.etree.ElementTree as ET

import pytest

from retrieval.evaluation.plot import Moment, draw_legend, draw_lines

SVG = "{http://www.w3.org/2000/svg}"


def moments(count: int) -> list[Moment]:
    return [Moment(f"{place + 1} Dec", f"version {place}") for place in range(count)]


def test_values_stand_where_they_belong() -> None:
    drawn = ET.fromstring(draw_lines("nDCG@10", moments(3), {"vector": [0.0, 0.5, 1.0]}, width=252, height=168))
    (line,) = drawn.findall(f"{SVG}polyline")
    assert line.get("points") == "40.0,128.0 140.0,78.0 240.0,28.0"
    assert [mark.find(f"{SVG}title").text for mark in drawn.findall(f"{SVG}circle")] == [
        "vector 0.0000, version 0",
        "vector 0.5000, version 1",
        "vector 1.0000, version 2",
    ]
    assert drawn.get("role") == "img"
    assert "Latest: vector 1.000" in drawn.get("aria-label")


def test_a_missing_value_breaks_the_line() -> None:
    drawn = ET.fromstring(draw_lines("MRR", moments(4), {"own": [0.1, None, 0.3, 0.4]}))
    assert [len(line.get("points").split()) for line in drawn.findall(f"{SVG}polyline")] == [1, 2]
    assert len(drawn.findall(f"{SVG}circle")) == 3


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_any_number_of_moments_is_drawn(count) -> None:
    drawn = ET.fromstring(draw_lines("MRR", moments(count), {"own": [0.5] * count, "vector": [None] * count}))
    labels = [text.text for text in drawn.findall(f"{SVG}text") if "Dec" in (text.text or "")]
    assert len(labels) <= 6
    if count:
        assert (labels[0], labels[-1]) == ("1 Dec", f"{count} Dec")


def test_names_are_escaped() -> None:
    drawn = draw_lines('<b>"', [Moment("<i>", "<script>")], {"&": [0.5]}) + draw_legend(["<u>"])
    assert not any(tag in drawn for tag in ("<b>", "<i>", "<script>", "<u>"))
