"""What a child may answer: the parent's check, because one that was taken over answers what it likes.

A reply carries the number of its request, which no child can guess before it has it: what was written ahead fits no later file."""

from collections.abc import Mapping
from typing import Any

from ingestion.extract.base import Extracted

NUMBER = "number"
OVER = "over"
SHAPES: dict[str, dict[str, Any]] = {
    "error": {"message": str, "reason": str, "retires": bool},
    "extracted": {
        "markdown": str,
        "title": str,
        "media_type": str,
        "language": str | None,
        "pages": list,
        "metadata": dict,
        "truncated": bool,
        "warnings": list,
        "parts": list,
        "page": dict | None,
        "files": list,
    },
    "passage": {"start": int, "end": int, "heading_path": list, "tokens": int, "table_header": list | None, "context": str},
    "file": {"name": str, "path": str, "media_type": str, "kind": str, "details": dict},
}
# Errors that the parent has the sentence for.
UNSAID = ("time_limit", "memory_limit", "output_limit", "crashed")
# What is sure to be there in the answer to each operation.
WANTED: dict[str, dict[str, Any]] = {
    "extract": {"extracted": dict, "passages": list},
    "chunk": {"passages": list, "language": str | None},
    "query": {"columns": list, "rows": list, "truncated": bool},
}


def check_reply(reply: Any, *, sent: Mapping[str, Any], is_over: bool = False) -> None:
    """Raises ValueError unless this answers the request that was sent: its number, and the shape of its operation or of an error; or, where
    `is_over` says that it may, that the time is over."""
    if not isinstance(reply, dict) or reply.get(NUMBER) != sent[NUMBER]:
        raise ValueError("the answer to something else")
    if is_over:
        return
    if "error" in reply:
        _check(reply["error"], SHAPES["error"])
        if not reply["error"]["message"] and reply["error"]["reason"] not in UNSAID:
            raise ValueError("an error that says nothing")
        return
    _check(reply, WANTED.get(sent["op"], {}))
    for passage in reply.get("passages", ()):
        _check(passage, SHAPES["passage"])
    if sent["op"] == "extract":
        _check_extracted(reply["extracted"])
    if sent["op"] == "recognize" and not isinstance(reply.get("recognized", reply.get("prepared")), dict | str):
        raise ValueError("neither recognized nor prepared")


def _check_extracted(value: Any) -> None:
    _check(value, SHAPES["extracted"])
    for file in value["files"]:
        _check(file, SHAPES["file"])
    try:
        Extracted.from_json(value)
    except TypeError as error:  # a field too many or too few
        raise ValueError(str(error)) from error


def _check(value: Any, shape: Mapping[str, Any]) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{type(value).__name__} instead of fields")
    for name, kind in shape.items():
        if name not in value or not isinstance(value[name], kind):
            raise ValueError(f"no {name}, or one of another kind")
