"""What a child process makes of an item: Markdown, passages, and the exact texts that are embedded."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.errors import LecternError
from config.http import user_agent
from ingestion.children import sandbox
from ingestion.models import RunItem
from ingestion.outboxes import Keep, outbox_for
from ingestion.plan import Plan
from kb import blobs


@dataclass(frozen=True, slots=True)
class Reading:
    """`extracted` is the extraction without its Markdown; passages are spans into that."""

    item: RunItem
    markdown: str
    extracted: dict[str, Any]
    passages: list[dict[str, Any]]
    page: dict[str, Any] | None = None
    """Of HTML that a web server gave: its links and rules (extract.html_page)."""

    def texts(self) -> list[str]:
        """What is embedded of each passage."""
        return [with_context(p["context"], self.markdown[p["start"] : p["end"]]) for p in self.passages]


def read_items(
    items: Sequence[RunItem],
    plan: Plan,
    *,
    seconds: float | None = None,
    known: Mapping[int, bytes] | None = None,
    keep: Keep | None = None,
) -> list[Reading | LecternError]:
    """What became of each item: read and cut, or only cut where its Markdown is known already. Those that could not be begun within
    `seconds`, if given, are missing at the end; the first is always there. `known` maps an item's id to the content hash of what stands:
    a page that still has it is read, for its links, and not cut. `keep` gets the files that came out of an item, before they go."""
    with ExitStack() as paths:
        lent: list[Path | LecternError] = []
        for item in items:
            try:
                lent.append(paths.enter_context(blobs.local_path(item.markdown or item.blob)))
            except LecternError as error:
                lent.append(error)
        hashes = known or {}
        asked = [
            paths.enter_context(outbox_for(item, _request(item, path, plan, known=hashes.get(item.id)), plan))
            for item, path in zip(items, lent, strict=True)
            if isinstance(path, Path)
        ]
        results = iter(sandbox().run_many([request for request, _ in asked], seconds=seconds))
        outboxes = iter(folder for _, folder in asked)
        found: list[Reading | LecternError] = []
        for item, path in zip(items, lent, strict=True):
            result, folder = (next(results, None), next(outboxes)) if isinstance(path, Path) else (path, None)
            if result is None:
                break
            try:
                found.append(result if isinstance(result, LecternError) else _kept(_reading(item, result), folder, keep))
            except LecternError as error:
                found.append(error)
        return found


def _kept(reading: Reading, folder: Path | None, keep: Keep | None) -> Reading:
    if folder is not None and keep is not None:
        keep(reading.item, folder, reading.extracted["files"])
    return reading


def read_item(item: RunItem, plan: Plan) -> Reading:
    """The same of one item. Raises `ExtractionError`, or `Unavailable` where its bytes cannot be read now."""
    (result,) = read_items([item], plan)
    if isinstance(result, LecternError):
        raise result
    return result


def read_file(item: RunItem, path: Path, plan: Plan) -> Reading:
    """The same of a file that holds the item's bytes, which need not be stored. Raises `ExtractionError`."""
    with outbox_for(item, _request(item, path, plan, known=None), plan) as (request, _):
        return _reading(item, sandbox().run(request))


def _request(item: RunItem, path: Path, plan: Plan, *, known: bytes | None) -> dict[str, Any]:
    common = {"path": str(path), "limits": plan.extract, "chunk": plan.chunk}
    if item.markdown is not None:
        return {"op": "chunk", "title": item.title, **common}
    request = {"op": "extract", "name": item.key, "declared_type": (item.document.media_type if item.document else "") or None, **common}
    if not item.url:
        return request
    served = item.response or {}
    agent = (plan.web and plan.web.user_agent) or user_agent()
    page = {"url": item.url, "charset": served.get("charset", ""), "robots_header": served.get("robots", ""), "agent": agent}
    return request | {"declared_type": served.get("media_type") or None, "page": page, "known": known.hex() if known else None}


def _reading(item: RunItem, result: dict[str, Any]) -> Reading:
    if item.markdown is None:
        extracted = dict(result["extracted"])
        page = extracted.pop("page")
        return Reading(item, extracted.pop("markdown"), extracted, result["passages"], page)
    document = item.document
    extracted = {
        "title": document.title,
        "media_type": document.media_type,
        "language": document.language or None,
        "pages": document.page_spans,
        "metadata": document.metadata,
        "warnings": [],
        "files": [],
    }
    return Reading(item, blobs.read_text(item.markdown), extracted, result["passages"])


def text_hash(text: str) -> bytes:
    """What a wanted vector is known by: the exact text that is sent."""
    return hashlib.sha256(text.encode("utf-8")).digest()


def with_context(context: str, text: str) -> str:
    """A passage under the line that says where it stands; the stored text stays as it is."""
    return f"{context}\n\n{text}" if context else text
