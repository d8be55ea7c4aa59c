"""JSON Schema of the documents, and the configuration reference: `python -m kb.schemas.describe > docs/configuration.md`."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from config.env import Environment, variable_names
from kb.schemas.budget import Budget
from kb.schemas.chunking import Chunking
from kb.schemas.embedding_model import EmbeddingModelInput
from kb.schemas.knowledge_base import KnowledgeBaseDocument
from kb.schemas.languages import NAMES
from kb.schemas.metadata import MetadataField
from kb.schemas.policy import PolicyChunking, PolicyDocument, Table, Transcription, Vision
from kb.schemas.providers import PROVIDERS, ProviderRules
from kb.schemas.reranker import RERANKERS, RerankerInput
from kb.schemas.retrieval_settings import Fusion, MinScore, RetrievalSettings
from kb.schemas.source import Source, SourceSettings, Upload
from kb.schemas.store import STORE_PARAMETERS, Store
from kb.schemas.web import Web

_INTRODUCTION = """# Configuration reference

<!-- Made by `python -m kb.schemas.describe > docs/configuration.md`. Edit the descriptions of the fields, not this page. -->

A knowledge base is one document. Each publish stores it whole, as an immutable numbered version; a field left out gets its
default. Unknown keys are refused by path and name, and nothing is converted: `"5"` is not `5`. Secrets are written
`${secret:NAME}`, in the parameters that take one; their values never enter a document.

```yaml
name: Handbooks
sources:
  - name: website
    cron: 30 3 * * *
    web:
      start_url: https://docs.example.com/
  - name: files
    type: upload
```
"""

_CRON = """Cron expressions have five fields (minute, hour, day of month, month, day of week) and are read in UTC. A day must match **both**
day fields: `0 0 13 * 5` runs on Fridays that are a 13th. Numbers, names (`mon`, `jan`), ranges, steps after `*` or a range, and lists are
accepted; an expression that never fires (`0 0 30 2 *`) or fires too often is refused when the document is saved or imported.
"""

_SECTIONS: tuple[tuple[str, str, type[BaseModel], str], ...] = (
    ("Knowledge base", "", KnowledgeBaseDocument, ""),
    ("Store", "store.", Store, ""),
    ("Chunking", "chunking.", Chunking, ""),
    ("Retrieval", "retrieval.", RetrievalSettings, ""),
    ("Lowest scores", "retrieval.min_score.", MinScore, ""),
    ("Fusion", "retrieval.fusion.", Fusion, ""),
    ("Budget", "budget.", Budget, ""),
    ("Metadata", "metadata.KEY.", MetadataField, ""),
    ("Source", "sources[].", Source, _CRON),
    ("Web source", "sources[].web.", Web, ""),
    ("Upload source", "sources[].upload.", Upload, ""),
    ("Source settings", "sources[].settings.", SourceSettings, ""),
)

_POLICY: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("Ingest policy", "", PolicyDocument),
    ("Cutting, by a policy", "chunking.", PolicyChunking),
    ("Transcription", "transcribe.", Transcription),
    ("Vision", "vision.", Vision),
    ("Tables, by a policy", "table.", Table),
)


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the knowledge base document as it may be written."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **KnowledgeBaseDocument.model_json_schema(mode="validation")}


def embedding_model_schema() -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **EmbeddingModelInput.model_json_schema(mode="validation")}


def describe() -> str:
    """docs/configuration.md: Markdown, ends with one line break."""
    return "\n".join(_pages()).rstrip() + "\n"


def _pages() -> Iterator[str]:
    yield _INTRODUCTION
    for title, prefix, model, note in _SECTIONS:
        yield f"## {title}\n"
        if note:
            yield note
        yield _fields(model, prefix)
        if model is Store:
            yield _store_parameters()
    yield "## Languages\n"
    yield "Beside `auto` and `simple`: " + ", ".join(f"`{code}` ({name})" for code, name in sorted(NAMES.items())) + ".\n"
    for title, prefix, policy in _POLICY:
        yield f"## {title}\n"
        if policy is PolicyDocument:
            yield "What a channel, or one upload, says of its files. Only what is written counts; see [files](files.md).\n"
        yield _fields(policy, prefix)
    yield "## Embedding model\n"
    yield "A row of the registry, written by an operator.\n"
    yield _fields(EmbeddingModelInput, "")
    yield _providers(PROVIDERS)
    yield "## Reranker\n"
    yield "A row of the registry, written by an administrator; `cross-encoder` by an operator.\n"
    yield _fields(RerankerInput, "")
    yield _providers(RERANKERS)
    yield "## Environment variables\n"
    yield "Each can also be given as `NAME_FILE`, the path of a file that holds the value. An unknown `LECTERN_` one stops the start.\n"
    yield _table(("variable", "type", "default", "meaning"), map(_variable, Environment.model_fields.items()))
    yield "`LECTERN_SECRET__NAME` gives the value of `${secret:NAME}`.\n"


def _fields(model: type[BaseModel], prefix: str) -> str:
    schema = model.model_json_schema(mode="validation")
    properties, required, definitions = schema["properties"], schema.get("required", []), schema.get("$defs", {})
    rows = []
    for key, rule in properties.items():
        field = next(field for name, field in model.model_fields.items() if key in (name, field.alias))
        default = "required" if key in required else _default(field)
        rows.append((f"`{prefix}{key}`", _type(rule, definitions), default, _rule(rule, field.description or "")))
    return _table(("field", "type", "default", "rule"), rows)


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return "each field's own"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _type(rule: dict[str, Any], definitions: dict[str, Any]) -> str:
    if "$ref" in rule:
        target = definitions.get(rule["$ref"].rpartition("/")[2], {})
        return "object" if target.get("type", "object") == "object" else _type(target, definitions)
    if "anyOf" in rule:
        kinds = [_type(option, definitions) for option in rule["anyOf"] if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "const" in rule:
        return f"`{rule['const']}`"
    if "enum" in rule:
        return ", ".join(f"`{value}`" for value in rule["enum"])
    if rule.get("type") == "array":
        return f"list of {_type(rule['items'], definitions)}"
    names = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "object": "object"}
    return names.get(rule.get("type", ""), "any")


def _rule(rule: dict[str, Any], text: str) -> str:
    """The description, and the range where the type of the field carries one."""
    bounds = next((option for option in rule.get("anyOf", []) if len(rule["anyOf"]) == 2 and {"type": "null"} in rule["anyOf"]), rule)
    low, high = bounds.get("minimum"), bounds.get("maximum")
    if low is not None and high is not None and high < 2**31 - 1:
        text += f" {low:,}–{high:,}."
    elif low is not None:
        text += f" From {low:,}."
    if rule.get("type") == "array" and rule.get("maxItems"):
        text += f" At most {rule['maxItems']:,} entries."
    if rule.get("type") == "string" and rule.get("maxLength", 10**9) > 1 and "characters" not in text and "maxLength" in rule:
        text += f" At most {rule['maxLength']:,} characters."
    return text


def _store_parameters() -> str:
    taken = {kind: ", ".join(f"`{key}`" for key in sorted(keys)) or "none" for kind, keys in STORE_PARAMETERS.items()}
    return _table(("store type", "parameters"), ((f"`{kind}`", keys) for kind, keys in taken.items()))


def _providers(known: Mapping[str, ProviderRules]) -> str:
    rows = []
    for name, rules in known.items():
        endpoint = "required" if rules.needs_endpoint else "optional" if rules.takes_endpoint else "refused"
        credential = "refused" if not rules.takes_credential else "optional"
        if rules.needs_credential:
            credential = "required" if rules.needs_endpoint or not rules.takes_endpoint else "required without an endpoint"
        keys = ", ".join(f"`{key}`" + (" (required)" if key in rules.required_parameters else "") for key in sorted(rules.parameters))
        rows.append((f"`{name}`", endpoint, credential, keys or "none"))
    return _table(("provider", "`endpoint`", "`credential`", "`parameters`"), rows)


def _variable(entry: tuple[str, FieldInfo]) -> tuple[str, str, str, str]:
    name, field = entry
    names = " or ".join(f"`{variable}`" for variable in variable_names(name))
    default = field.get_default(call_default_factory=True)
    listed = ", ".join(map(str, default)) if isinstance(default, tuple) else json.dumps(default)
    shown = "none" if default in (None, "", ()) else f"`{listed}`"
    kinds = {bool: "true or false", int: "whole number", float: "number"}
    kind = kinds.get(field.annotation, "list, comma-separated" if isinstance(default, tuple) else "text")
    return names, kind, shown, (field.description or "").strip()


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(describe())
