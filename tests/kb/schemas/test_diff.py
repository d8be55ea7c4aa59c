"""A diff names places as a person would, and shows no secret."""

from typing import Any

import pytest

from kb.schemas import assign_source_ids, dump, load
from kb.schemas.diff import Change, diff, render


def published(*sources: dict[str, Any], **values: Any) -> dict[str, Any]:
    return dump(assign_source_ids(load({"name": "kb", "sources": list(sources), **values}), None))


A = {"name": "handbooks", "type": "upload"}
B = {"name": "site", "web": {"start_url": "https://a.example/", "exclude_patterns": ["/x/**", "/y/**"]}}


@pytest.fixture
def old() -> dict[str, Any]:
    return published(A, B)


def edited(document: dict[str, Any], **values: Any) -> dict[str, Any]:
    return dump(load({**document, **values}))


def test_nothing_changed(old: dict[str, Any]) -> None:
    assert diff(old, old) == []
    assert render([]) == ""


def test_fields_by_path(old: dict[str, Any]) -> None:
    new = edited(old, name="other", chunking={"target_tokens": 300}, retrieval={"mode": "vector"})
    assert diff(old, new) == [
        Change("name", "changed", "kb", "other"),
        Change("chunking.target_tokens", "changed", "auto", 300),
        Change("retrieval.mode", "changed", "hybrid", "vector"),
    ]


def test_a_setting_of_a_source(old: dict[str, Any]) -> None:
    handbooks, site = old["sources"]
    changed = {**handbooks, "settings": {"time_budget_minutes": 60}}
    changes = diff(old, edited(old, sources=[site, changed]))
    assert changes == [Change("sources[handbooks].settings.time_budget_minutes", "changed", 10, 60)]
    assert render(changes) == "~ sources[handbooks].settings.time_budget_minutes: 10 → 60"


def test_moved_is_not_changed(old: dict[str, Any]) -> None:
    assert diff(old, edited(old, sources=old["sources"][::-1])) == []


def test_renamed_is_one_change(old: dict[str, Any]) -> None:
    handbooks, site = old["sources"]
    assert diff(old, edited(old, sources=[{**handbooks, "name": "manuals"}, site])) == [
        Change("sources[manuals].name", "changed", "handbooks", "manuals")
    ]


def test_swapped_names_are_two_renames(old: dict[str, Any]) -> None:
    handbooks, site = old["sources"]
    swapped = [{**handbooks, "name": "site"}, {**site, "name": "handbooks"}]
    assert [change.path for change in diff(old, edited(old, sources=swapped))] == ["sources[site].name", "sources[handbooks].name"]


def test_the_same_name_under_another_id_is_another_source(old: dict[str, Any]) -> None:
    new = published(A, B)
    assert [(change.kind, change.path) for change in diff(old, new)] == [
        ("added", "sources[handbooks]"),
        ("added", "sources[site]"),
        ("removed", "sources[handbooks]"),
        ("removed", "sources[site]"),
    ]


def test_added_and_removed_sources(old: dict[str, Any]) -> None:
    site = old["sources"][1]
    changes = diff(old, edited(old, sources=[site, {"name": "new", "type": "upload"}]))
    assert [(change.kind, change.path) for change in changes] == [("added", "sources[new]"), ("removed", "sources[handbooks]")]
    assert [line[0] for line in render(changes).splitlines()] == ["+", "-"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["/x/**"], [("removed", "/y/**", None)]),
        (["/x/**", "/y/**", "/z/**", "/z/**"], [("added", None, "/z/**"), ("added", None, "/z/**")]),
        (["/z/**", "/y/**"], [("removed", "/x/**", None), ("added", None, "/z/**")]),
        (["/y/**", "/x/**"], [("changed", ["/x/**", "/y/**"], ["/y/**", "/x/**"])]),
        ([], [("removed", "/x/**", None), ("removed", "/y/**", None)]),
    ],
)
def test_lists_of_texts(old: dict[str, Any], patterns: list[str], expected: list[tuple[str, Any, Any]]) -> None:
    handbooks, site = old["sources"]
    new = edited(old, sources=[handbooks, {**site, "web": {**site["web"], "exclude_patterns": patterns}}])
    changes = diff(old, new)
    assert {change.path for change in changes} == {"sources[site].web.exclude_patterns"}
    assert [(change.kind, change.old, change.new) for change in changes] == expected


def test_true_is_not_one() -> None:
    assert diff({"a": 1}, {"a": True}) == [Change("a", "changed", 1, True)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"api_key": "hunter2hunter2"}, {"api_key": "${secret:KEY}"}),
        ({"api_key": "hunter2hunter2"}, {}),
        ({}, {"api_key": "hunter2hunter2"}),
        ({"host": "sk-hunter2hunter2hunter2"}, {"host": "x"}),
        ({"nested": [{"password": "hunter2hunter2"}]}, {"nested": []}),
    ],
)
def test_a_secret_in_clear_is_never_shown(before: dict[str, Any], after: dict[str, Any]) -> None:
    changes = diff({"store": {"parameters": before}}, {"store": {"parameters": after}})
    assert changes
    assert "hunter2" not in render(changes)
    assert "hunter2" not in repr(changes)


def test_two_secrets_in_clear_still_differ() -> None:
    [change] = diff({"password": "a"}, {"password": "b"})
    assert (change.kind, change.old, change.new) == ("changed", "(hidden)", "(hidden)")


def test_references_are_shown() -> None:
    [change] = diff({"password": "${secret:OLD}"}, {"password": "${secret:NEW}"})
    assert render([change]) == '~ password: "${secret:OLD}" → "${secret:NEW}"'


def test_what_only_one_side_knows() -> None:
    assert diff({"a": 1, "b": 2}, {"b": 2, "c": {"d": 3}}) == [Change("c", "added", new={"d": 3}), Change("a", "removed", old=1)]


def test_long_values_are_cut() -> None:
    assert len(render([Change("description", "changed", "x" * 10_000, "y")])) < 700
