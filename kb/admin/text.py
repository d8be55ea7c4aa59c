"""Configuration documents as people type them: YAML, of which JSON is a part."""

from typing import Any

import yaml

from config.body import parse_json
from config.errors import InvalidInput
from kb import schemas
from kb.models import KnowledgeBaseVersion

MAX_CHARACTERS = 1_000_000


class _Loader(yaml.SafeLoader):
    """Without aliases (a small text could mean a huge document), dates (they are text here) and repeated keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not taken here", problem_mark=self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str):
                raise yaml.MarkedYAMLError(problem=f"the key {name!r} is not text; put it in quotes", problem_mark=key.start_mark)
            if name in seen:
                raise yaml.MarkedYAMLError(problem=f"the key '{name}' stands twice", problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_text(text: str) -> dict[str, Any]:
    """The document that a text of YAML or JSON means; InvalidInput names line and column."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"The document has {len(text):,} characters; at most {MAX_CHARACTERS:,} are taken.")
    is_json = text.lstrip().startswith("{")
    document = parse_json(text.encode("utf-8", "surrogatepass")) if is_json else _read_yaml(text)
    if not isinstance(document, dict):
        raise InvalidInput("The document is not an object. Write keys and values, such as `name: Handbooks`.")
    return document


def write_text(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def text_of(version: KnowledgeBaseVersion) -> str:
    """A version in the order of the document's description; a JSON column forgets it."""
    return write_text(document_of(version))


def document_of(version: KnowledgeBaseVersion) -> dict[str, Any]:
    return schemas.dump(schemas.load_stored(version.document))


def _read_yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InvalidInput(f"The document is not valid YAML{where}: {error.problem}.") from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise InvalidInput("The document is not valid YAML: it holds characters or nesting that YAML does not know.") from None
