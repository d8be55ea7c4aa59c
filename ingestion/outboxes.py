"""What comes out of a file besides its text: whether it is wanted, where it goes meanwhile, and how it is kept."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from config.scratch import make_scratch
from ingestion.datasets.names import dataset_name
from ingestion.datasets.wanted import named_key
from ingestion.models import RunItem
from ingestion.parts import known_datasets
from ingestion.plan import Plan
from kb import blobs
from kb.models import Document
from kb.schemas.families import family_of

# Of one file: its rows as text, and as Parquet.
MAX_OUTPUT_BYTES = 512 * 1024 * 1024
MESSAGES = (".eml", ".msg")
MESSAGE_TYPES = frozenset({"message/rfc822", "application/vnd.ms-outlook"})
Keep = Callable[[RunItem, Path, list[dict[str, Any]]], None]


@contextmanager
def outbox_for(item: RunItem, request: dict[str, Any], plan: Plan) -> Iterator[tuple[dict[str, Any], Path | None]]:
    """The request with what is wanted of files, and the folder that they come to; it goes when the block ends."""
    may_be_table = request["op"] == "extract" and _may_be_table(request, plan)
    if not may_be_table and not _may_be_message(request):
        yield request, None
        return
    folder = make_scratch()
    try:
        limits = {**request["limits"], "max_output_bytes": MAX_OUTPUT_BYTES}
        tables = {"tables": _tables(item, plan)} if may_be_table else {}
        yield {**request, "limits": limits, "outbox": str(folder), **tables}, folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep_files(item: RunItem, folder: Path, files: list[dict[str, Any]]) -> None:
    """Store what came out of an item; each file then names its blob, but for those that were refused. Raises `Unavailable`."""
    for file in files:
        if not file["path"]:
            continue
        with (folder / file["path"]).open("rb") as stream:
            blob = blobs.store_stream(item.organization_id, stream)
        file["blob"], file["size"], file["sha256"] = str(blob.id), blob.size, bytes(blob.sha256).hex()


def _may_be_message(request: Mapping[str, Any]) -> bool:
    """Attachments of messages that a site links to are not taken in: they would be no pages of it."""
    if request["op"] != "extract" or request.get("page"):
        return False
    return request["name"].lower().endswith(MESSAGES) or request["declared_type"] in MESSAGE_TYPES


def _may_be_table(request: Mapping[str, Any], plan: Plan) -> bool:
    if plan.policy.mode == "tabular":
        return True
    page = request.get("page")
    name = unquote(urlsplit(page["url"]).path, errors="replace") if page else request["name"]
    return plan.policy.mode == "auto" and family_of(media_type=request["declared_type"] or "", name=name) == "tabular"


def _tables(item: RunItem, plan: Plan) -> dict[str, Any]:
    """The fields of `ingestion.datasets.wanted.Wanted`."""
    table = plan.policy.table
    known = {}
    if table.name and table.mode == "append":
        known = known_datasets(item, prefix=named_key(dataset_name(table.name), scope=_scope(item.document)))
    return {
        "key": bytes(item.key_hash).hex(),
        "mode": plan.policy.mode,
        "name": table.name,
        "scope": _scope(item.document),
        "replaces": table.mode == "replace",
        "partition_by": table.partition_by,
        "delimiter": table.delimiter,
        "header": table.header,
        "known": {key: value.to_json() for key, value in known.items()},
    }


def _scope(document: Document | None) -> str:
    """Whose datasets a file goes into: a private one tells nobody else of its columns and rows."""
    if document is None or document.visibility != Document.Visibility.PRIVATE:
        return ""
    return f"user {document.owner_id}" if document.owner_id else f"key {document.owner_key_id}"
