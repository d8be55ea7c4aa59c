"""What a child process makes of an item: Markdown, passages, and the exact texts that are embedded."""

import hashlib
from dataclasses import dataclass
from typing import Any

from config.http import user_agent
from ingestion.children import sandbox
from ingestion.models import RunItem
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


def read_item(item: RunItem, plan: Plan) -> Reading:
    """Extract and cut the item's bytes, or only cut its Markdown where that is known already. Raises `ExtractionError`."""
    if item.markdown is None:
        with blobs.local_path(item.blob) as path:
            declared = item.document.media_type if item.document else None
            request = {"op": "extract", "path": str(path), "name": item.key, "declared_type": declared or None}
            if item.url:
                served = item.response or {}
                agent = (plan.web and plan.web.user_agent) or user_agent()
                page = {"url": item.url, "charset": served.get("charset", ""), "robots_header": served.get("robots", ""), "agent": agent}
                request |= {"declared_type": served.get("media_type") or None, "page": page}
            result = sandbox().run({**request, "limits": plan.extract, "chunk": plan.chunk})
        extracted = dict(result["extracted"])
        page = extracted.pop("page")
        return Reading(item, extracted.pop("markdown"), extracted, result["passages"], page)
    with blobs.local_path(item.markdown) as path:
        result = sandbox().run({"op": "chunk", "path": str(path), "limits": plan.extract, "chunk": plan.chunk, "title": item.title})
    document = item.document
    extracted = {
        "title": document.title,
        "media_type": document.media_type,
        "language": document.language or None,
        "pages": document.page_spans,
        "metadata": document.metadata,
        "warnings": [],
    }
    return Reading(item, blobs.read_text(item.markdown), extracted, result["passages"])


def text_hash(text: str) -> bytes:
    """What a wanted vector is known by: the exact text that is sent."""
    return hashlib.sha256(text.encode("utf-8")).digest()


def with_context(context: str, text: str) -> str:
    """A passage under the line that says where it stands; the stored text stays as it is."""
    return f"{context}\n\n{text}" if context else text
