"""The web pages of ../shared/data: how much of what belongs to each page comes out, and how little else, beside plain trafilatura."""

import pytest

from tests.benchmarks.pages import READERS, measure_quality, read_pages


@pytest.fixture(scope="module")
def figures(shared_documents):
    return measure_quality(shared_documents / "web_pages")


def test_all_pages(figures):
    ours, plain = figures["all"]["lectern"], figures["all"]["trafilatura"]
    assert ours["f1"] > 0.86, ours
    assert ours["recall"] > 0.93, ours
    assert ours["with"] > 0.9, ours
    assert ours["without_avoided"] > max(0.95, plain["without_avoided"]), (ours, plain)
    assert ours["f1"] > plain["f1"] + 0.05
    assert ours["with"] > plain["with"] + 0.1


@pytest.mark.parametrize(
    ("kind", "wanted", "avoided"),
    [
        ("article", 0.94, 0.93),  # of one article plain trafilatura finds nothing, and so nothing that is not wanted
        ("documentation", 1.0, 1.0),
        ("forum", 1.0, 1.0),
        ("listing", 0.81, 1.0),
        ("product", 0.91, 1.0),
        ("service", 1.0, 1.0),
    ],
)
def test_kinds_of_pages(figures, kind, wanted, avoided):
    ours, plain = figures[kind]["lectern"], figures[kind]["trafilatura"]
    assert ours["with"] >= max(wanted, plain["with"]), (ours, plain)
    assert ours["without_avoided"] >= avoided, (ours, plain)


def test_hidden_page_is_not_shown(shared_documents):
    """One page of the set hides all of its list until a script shows it: what is hidden never comes out, whoever hid it."""
    page = next(page for page in read_pages(shared_documents / "web_pages") if page.name == "0658")
    assert page.wanted[0] not in READERS["lectern"](page)
