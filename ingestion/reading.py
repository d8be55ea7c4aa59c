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
from ingestion.extract.base import EXTRACTOR_VERSION, Part
from ingestion.models import RunItem
from ingestion.outboxes import Keep, outbox_for
from ingestion.plan import Plan
from ingestion.recognition import Recognition, recognition_for
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


@dataclass(frozen=True, slots=True)
class Parted:
    """A file whose text has to be recognized first, part by part; `recipe` is what the parts are read by."""

    item: RunItem
    extracted: dict[str, Any]
    parts: list[Part]
    recipe: str

    def unread(self) -> Reading:
        """As a look tells of it that recognizes nothing: how much text there is shows only in a run."""
        return Reading(self.item, "", self.extracted, [])


def read_items(
    items: Sequence[RunItem],
    plan: Plan,
    *,
    seconds: float | None = None,
    known: Mapping[int, bytes] | None = None,
    keep: Keep | None = None,
) -> list[Reading | Parted | LecternError]:
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
        recognition = recognition_for(items[0].organization_id, ocr=plan.ocr, policy=plan.policy)
        asked = [
            paths.enter_context(outbox_for(item, _request(item, path, plan, recognition, known=hashes.get(item.id)), plan))
            for item, path in zip(items, lent, strict=True)
            if isinstance(path, Path)
        ]
        results = iter(sandbox().run_many([request for request, _ in asked], seconds=seconds, owner=items[0].organization_id))
        outboxes = iter(folder for _, folder in asked)
        found: list[Reading | Parted | LecternError] = []
        for item, path in zip(items, lent, strict=True):
            result, folder = (next(results, None), next(outboxes)) if isinstance(path, Path) else (path, None)
            if result is None:
                break
            try:
                found.append(result if isinstance(result, LecternError) else _kept(_reading(item, result, recognition), folder, keep))
            except LecternError as error:
                found.append(error)
        return found


def _kept(reading: Reading | Parted, folder: Path | None, keep: Keep | None) -> Reading | Parted:
    if folder is not None and keep is not None:
        keep(reading.item, folder, reading.extracted["files"])
    return reading


def read_item(item: RunItem, plan: Plan) -> Reading | Parted:
    """The same of one item. Raises `ExtractionError`, or `Unavailable` where its bytes cannot be read now."""
    (result,) = read_items([item], plan)
    if isinstance(result, LecternError):
        raise result
    return result


def read_file(item: RunItem, path: Path, plan: Plan) -> Reading | Parted:
    """The same of a file that holds the item's bytes, which need not be stored. Raises `ExtractionError`."""
    recognition = recognition_for(item.organization_id, ocr=plan.ocr, policy=plan.policy)
    with outbox_for(item, _request(item, path, plan, recognition, known=None), plan) as (request, _):
        return _reading(item, sandbox().run(request, owner=item.organization_id), recognition)


def _request(item: RunItem, path: Path, plan: Plan, recognition: Recognition, *, known: bytes | None) -> dict[str, Any]:
    common = {"path": str(path), "limits": {**plan.extract, **recognition.limits()}, "chunk": plan.chunk}
    if item.markdown is not None:
        said = item.extracted if _was_joined(item) else {"metadata": item.document.metadata}
        cut = {"chunk": plan.speech} if said["metadata"].get("transcribed") else {}
        return {"op": "chunk", "title": item.title, "detect": _was_joined(item), **common, **cut}
    request = {"op": "extract", "name": item.file_name, "declared_type": _declared_type(item) or None, **common}
    if not item.url:
        return request
    served = item.response or {}
    agent = (plan.web and plan.web.user_agent) or user_agent()
    page = {"url": item.url, "charset": served.get("charset", ""), "robots_header": served.get("robots", ""), "agent": agent}
    return request | {"declared_type": served.get("media_type") or None, "page": page, "known": known.hex() if known else None}


def _declared_type(item: RunItem) -> str:
    """As its uploader said; what an earlier reading found is no declaration."""
    document = item.document
    if document is None:
        return ""
    return document.file.media_type if document.file else document.media_type


def _was_joined(item: RunItem) -> bool:
    """Whether the item's Markdown was put together in this run, of parts that were recognized."""
    return bool(item.parts and (item.extracted or {}).get("joined"))


def _reading(item: RunItem, result: dict[str, Any], recognition: Recognition) -> Reading | Parted:
    if item.markdown is None:
        extracted = dict(result["extracted"])
        page, parts = extracted.pop("page"), [Part(**part) for part in extracted.pop("parts")]
        markdown = extracted.pop("markdown")
        extracted["extractor_version"] = EXTRACTOR_VERSION
        if any(part.text is None for part in parts):
            return Parted(item, extracted, recognition.parts_of(parts), recognition.recipe(parts[0].kind))
        return Reading(item, markdown, extracted, result["passages"], page)
    if _was_joined(item):
        extracted = {name: value for name, value in item.extracted.items() if name not in ("joined", "given")}
        extracted["language"] = extracted["language"] or result["language"]
    else:
        document = item.document
        extracted = {
            "title": document.title,
            "media_type": document.media_type,
            "language": document.language or None,
            "pages": document.page_spans,
            "metadata": document.metadata,
            "warnings": document.warnings,
            "files": [],
            "extractor_version": document.extractor_version,
        }
    return Reading(item, blobs.read_text(item.markdown), extracted, result["passages"])


def text_hash(text: str) -> bytes:
    """What a wanted vector is known by: the exact text that is sent."""
    return hashlib.sha256(text.encode("utf-8")).digest()


def with_context(context: str, text: str) -> str:
    """A passage under the line that says where it stands; the stored text stays as it is."""
    return f"{context}\n\n{text}" if context else text
