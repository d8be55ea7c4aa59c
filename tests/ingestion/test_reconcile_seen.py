"""What a run's verdicts say about documents, as rows of a table."""

import pytest

from ingestion.reconcile import Action, Coverage, Finding, Known, Seen, Settings, hidden_from_view, reconcile, what_was_seen

HERE, THERE, FURTHER = b"here", b"there", b"further"
READ = Finding("ingested")
REFUSED = Finding("failed", "server_error")
MISSING = Finding("skipped", "gone")


def moved(target: bytes = THERE, *, permanent: bool = True) -> Finding:
    return Finding("skipped", "redirected", target=target, permanent=permanent)


LOGIN = {THERE: READ, b"1": moved(permanent=False), b"2": moved(permanent=False)}
DEFERS = Finding("skipped", "duplicate_of", target=THERE, permanent=True)


@pytest.mark.parametrize(
    ("rule", "finding", "others", "expected"),
    [
        ("a document that was ingested is there", READ, {}, Seen.PRESENT),
        ("an unchanged one too", Finding("unchanged"), {}, Seen.PRESENT),
        ("404 and 410 say gone", MISSING, {}, Seen.GONE),
        ("a page like those of made-up addresses is gone", Finding("skipped", "soft_404"), {}, Seen.GONE),
        ("a page that is no document any more is gone", Finding("skipped", "not_a_document"), {}, Seen.GONE),
        ("a page that asks not to be indexed is gone", Finding("skipped", "noindex"), {}, Seen.GONE),
        ("401 and 403 say nothing", Finding("failed", "unauthorized"), {}, Seen.UNKNOWN),
        ("408 and 429 say nothing", Finding("failed", "rate_limited"), {}, Seen.UNKNOWN),
        ("5xx says nothing", REFUSED, {}, Seen.UNKNOWN),
        ("no answer says nothing", Finding("failed", "unreachable"), {}, Seen.UNKNOWN),
        ("a refused address says nothing", Finding("failed", "address_refused"), {}, Seen.UNKNOWN),
        ("robots.txt that cannot be read says nothing", Finding("failed", "robots_unavailable"), {}, Seen.UNKNOWN),
        ("a page that needs scripts says nothing", Finding("failed", "needs_javascript"), {}, Seen.UNKNOWN),
        ("an empty page says nothing", Finding("skipped", "empty"), {}, Seen.UNKNOWN),
        ("one page for every address says nothing", Finding("failed", "same_for_all"), {}, Seen.UNKNOWN),
        ("a page that a limit kept us from says nothing", Finding("skipped", "page_limit"), {}, Seen.UNKNOWN),
        ("a page that killed its worker says nothing", Finding("failed", "worker_died"), {}, Seen.UNKNOWN),
        ("a file that cannot be read is there: its old text has retired", Finding("failed", "encrypted"), {}, Seen.PRESENT),
        ("what robots.txt forbids counts as not met", Finding("skipped", "robots"), {}, Seen.ABSENT),
        ("what is out of scope counts as not met", Finding("skipped", "out_of_scope"), {}, Seen.ABSENT),
        ("moved for good to a page that was read", moved(), {THERE: READ}, Seen.MOVED),
        ("over two hops too", moved(), {THERE: moved(FURTHER, permanent=False), FURTHER: READ}, Seen.MOVED),
        ("moved for good to a page that is gone", moved(), {THERE: MISSING}, Seen.ABSENT),
        ("moved for good out of the scope", moved(), {THERE: Finding("skipped", "out_of_scope")}, Seen.ABSENT),
        ("moved for good to a page that could not be read", moved(), {THERE: REFUSED}, Seen.UNKNOWN),
        ("moved in a circle", moved(), {THERE: moved(HERE)}, Seen.ABSENT),
        ("moved for now counts as not met", moved(permanent=False), {THERE: READ}, Seen.ABSENT),
        ("unless so many go there that it is a login", moved(permanent=False), LOGIN, Seen.UNKNOWN),
        ("two that moved for good to one page are only missed", moved(), {THERE: READ, b"1": moved()}, Seen.ABSENT),
        ("more of them too", moved(), {THERE: READ, b"1": moved(), b"2": moved()}, Seen.ABSENT),
        ("a page that names another as its canonical has moved there", DEFERS, {THERE: READ}, Seen.MOVED),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rule(rule, finding, others, expected):
    assert what_was_seen({HERE: finding, **others})[HERE] == expected


def decide(seen: Seen, coverage: Coverage) -> Action:
    known = [Known(number, 0, False, seen if number == 0 else Seen.PRESENT) for number in range(10)]
    return reconcile(known, coverage=coverage, settings=Settings()).decisions[0].action


@pytest.mark.parametrize(
    ("coverage", "expected"),
    [
        (Coverage(completed=True, usable=9), Action.REMOVE),
        (Coverage(completed=False, usable=9), Action.KEEP),
        (Coverage(completed=True, usable=9, sitemaps_whole=False), Action.KEEP),
        (Coverage(completed=True, usable=9, answers_everything=True), Action.KEEP),
    ],
    ids=["a run that concludes", "a run that stopped", "a sitemap that was cut", "a site that answers everything alike"],
)
def test_what_moved_goes_at_once_but_only_by_a_run_that_concludes(coverage, expected):
    assert decide(Seen.MOVED, coverage) == expected


@pytest.mark.parametrize(
    ("rule", "ways", "seen", "hidden"),
    [
        ("below a page that could not be read", {b"child": [b"list"]}, {b"list": Seen.UNKNOWN}, {b"child"}),
        ("two levels below it", {b"leaf": [b"child"], b"child": [b"list"]}, {b"list": Seen.UNKNOWN}, {b"leaf", b"child"}),
        ("below a page that was read and does not link it any more", {b"child": [b"list"]}, {b"list": Seen.PRESENT}, set()),
        ("below a page that is gone", {b"child": [b"list"]}, {b"list": Seen.GONE}, set()),
        ("of a sitemap, or the start", {b"child": []}, {b"list": Seen.UNKNOWN}, set()),
        ("met another way", {b"child": [b"list"]}, {b"list": Seen.UNKNOWN, b"child": Seen.GONE}, set()),
        ("below a redirect that an unread page led to", {b"child": [b"hop", b"list"]}, {b"list": Seen.UNKNOWN}, {b"child"}),
        (
            "below a list, not indexed, that could not be read",
            {b"child": [b"hop", b"list"]},
            {b"hop": Seen.UNKNOWN, b"list": Seen.PRESENT},
            {b"child"},
        ),
        ("below one that does not link it any more", {b"child": [b"hop", b"list"]}, {b"hop": Seen.GONE, b"list": Seen.UNKNOWN}, set()),
        ("in a circle", {b"a": [b"b"], b"b": [b"a"]}, {}, set()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_did_not_come_up(rule, ways, seen, hidden):
    assert hidden_from_view(ways, seen) == hidden
