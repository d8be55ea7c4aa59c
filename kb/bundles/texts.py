"""Configuration documents as people write them: YAML, of which JSON is a part. Strict: a text means one thing or is refused."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from config.body import MAX_DEPTH, parse_json
from config.errors import InvalidInput

MAX_CHARACTERS = 1_000_000

_TEXT = "tag:yaml.org,2002:str"
# libyaml reads several times as fast; a build of PyYAML without it gives the same answers.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):
    """Refuses repeated keys and keys that are no text. Bare words are the text, number or truth value that they look like by the rules of
    YAML 1.2: `no`, `1:30`, `010` and a date are text."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            name = key.value if key.tag == _TEXT else self.construct_object(key, deep=True)
            if not isinstance(name, str):
                raise yaml.MarkedYAMLError(problem=f"the key {name!r} is not text; put it in quotes", problem_mark=key.start_mark)
            if name in seen:
                raise yaml.MarkedYAMLError(problem=f"the key '{name}' stands twice", problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


# Each is a part of what the writer takes for the same type, so that whatever the writer leaves bare comes back as it was.
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+0123456789."),
):
    _firsts = ["" if character == "\0" else character for character in _first]
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _firsts)


def read_document(text: str, *, what: str = "The document") -> dict[str, Any]:
    """The one document that a text of YAML or JSON means; InvalidInput names line and column."""
    found = read_documents(text, what=what)
    if len(found) > 1:
        raise InvalidInput(f"{what} is several documents, separated by ---. Keep one.")
    if not found:
        raise InvalidInput(f"{what} is empty. Write keys and values, such as `name: Handbooks`.")
    return found[0]


def read_documents(text: str, *, what: str = "The document", max_characters: int = MAX_CHARACTERS) -> list[dict[str, Any]]:
    """The documents of a text, which `---` separates; empty ones are left out."""
    if len(text) > max_characters:
        raise InvalidInput(f"{what} has {len(text):,} characters; at most {max_characters:,} are taken.")
    is_json = text.lstrip().startswith("{")
    found = [parse_json(text.encode("utf-8", "surrogatepass"))] if is_json else _read_yaml(text, what)
    for document in found:
        if not isinstance(document, dict):
            raise InvalidInput(f"{what} is not an object. Write keys and values, such as `name: Handbooks`.")
    return found


def write_document(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=120)


def write_documents(documents: Iterable[Mapping[str, Any]]) -> str:
    return "---\n".join(map(write_document, documents))


def _read_yaml(text: str, what: str) -> list[Any]:
    try:
        _check_events(text)
        return [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InvalidInput(f"{what} is not valid YAML{where}: {error.problem}.") from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise InvalidInput(f"{what} is not valid YAML: it holds characters or nesting that YAML does not know.") from None


def _check_events(text: str) -> None:
    """Before anything is built: no aliases (a small text could mean a huge document), no tags, and only so deep."""
    depth = 0
    for event in yaml.parse(text, Loader=_Base):
        if isinstance(event, yaml.events.AliasEvent):
            problem = "aliases (*name) are not taken here"
        elif getattr(event, "tag", None):
            problem = "tags (!name) are not taken here; put text in quotes"
        elif isinstance(event, yaml.events.CollectionStartEvent) and depth >= MAX_DEPTH:
            problem = f"it is nested deeper than {MAX_DEPTH} levels"
        else:
            depth += isinstance(event, yaml.events.CollectionStartEvent) - isinstance(event, yaml.events.CollectionEndEvent)
            continue
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
