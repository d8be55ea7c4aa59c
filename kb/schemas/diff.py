"""What changed between two versions, readable."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kb.schemas.parameters import REFERENCE, is_secret_key, looks_secret

_HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class Change:
    """`old` is None for what was added, `new` for what was removed."""

    path: str
    kind: Literal["added", "removed", "changed"]
    old: Any = None
    new: Any = None


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Changes from `old` to `new`, in the order of the document. Both should come from `dump`, or a default shows as a change.

    Sources are matched by id, else by name: one that moved in the list has not changed, one that was renamed shows its new name.
    """
    changes: list[Change] = []
    _compare(changes, "", old, new)
    return changes


def render(changes: Sequence[Change]) -> str:
    """One line per change; empty text if nothing changed."""
    lines = []
    for change in changes:
        if change.kind == "added":
            lines.append(f"+ {change.path}: {_show(change.new)}")
        elif change.kind == "removed":
            lines.append(f"- {change.path}: {_show(change.old)}")
        else:
            lines.append(f"~ {change.path}: {_show(change.old)} → {_show(change.new)}")
    return "\n".join(lines)


def _compare(changes: list[Change], path: str, old: Any, new: Any) -> None:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*new, *(key for key in old if key not in new)]:
            inner = f"{path}.{key}" if path else str(key)
            if key not in old:
                changes.append(Change(inner, "added", new=masked(key, new[key])))
            elif key not in new:
                changes.append(Change(inner, "removed", old=masked(key, old[key])))
            elif is_secret_key(str(key)) and old[key] != new[key]:
                changes.append(Change(inner, "changed", masked(key, old[key]), masked(key, new[key])))
            else:
                _compare(changes, inner, old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list):
        if _named(old) and _named(new):
            _compare_named(changes, path, old, new)
        else:
            _compare_plain(changes, path, old, new)
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        changes.append(Change(path, "changed", masked("", old), masked("", new)))


def _compare_named(changes: list[Change], path: str, old: list[Any], new: list[Any]) -> None:
    left = list(old)
    pairs: list[tuple[Any, Any]] = []
    for entry in new:
        match = next((other for other in left if entry.get("id") and other.get("id") == entry["id"]), None)
        if match is not None:
            left.remove(match)
        pairs.append((match, entry))
    for match, entry in pairs:
        inner = f"{path}[{entry['name']}]"
        if match is None:
            # An entry without an id was written by a person: its name is what identifies it.
            match = next((o for o in left if o["name"] == entry["name"] and not (o.get("id") and entry.get("id"))), None)
            if match is not None:
                left.remove(match)
        if match is None:
            changes.append(Change(inner, "added", new=masked("", entry)))
        else:
            _compare(changes, inner, match, entry)
    changes.extend(Change(f"{path}[{entry['name']}]", "removed", old=masked("", entry)) for entry in left)


def _compare_plain(changes: list[Change], path: str, old: list[Any], new: list[Any]) -> None:
    before, after = Counter(map(_key, old)), Counter(map(_key, new))
    if before == after:
        if old != new:
            changes.append(Change(path, "changed", masked("", old), masked("", new)))
        return
    for entry, key in ((entry, _key(entry)) for entry in old):
        if before[key] > after[key]:
            before[key] -= 1
            changes.append(Change(path, "removed", old=masked("", entry)))
    before = Counter(map(_key, old))
    for entry, key in ((entry, _key(entry)) for entry in new):
        if after[key] > before[key]:
            after[key] -= 1
            changes.append(Change(path, "added", new=masked("", entry)))


def _named(entries: list[Any]) -> bool:
    return all(isinstance(entry, Mapping) and isinstance(entry.get("name"), str) for entry in entries)


def _key(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True)


def masked(key: Any, value: Any) -> Any:
    """Secrets are shown as their reference or not at all, also where an old version holds one in clear."""
    if isinstance(value, Mapping):
        return {inner: masked(inner, item) for inner, item in value.items()}
    if isinstance(value, list):
        return [masked(key, item) for item in value]
    if isinstance(value, str) and value and not REFERENCE.fullmatch(value) and (is_secret_key(str(key)) or looks_secret(value)):
        return _HIDDEN
    return value


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 500 else f"{text[:500]}… ({len(text)} characters)"
