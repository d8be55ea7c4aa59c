"""Bundles on their way out: YAML, or a ZIP with a manifest and one file a knowledge base."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from kb.bundles.archives import pack
from kb.bundles.base import Export, secret_names
from kb.bundles.texts import write_document, write_documents

FORMAT = "lectern-knowledge-bases"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
FOLDER = "knowledge-bases"


def write_yaml(exports: Sequence[Export]) -> str:
    """One document a knowledge base, without anything that differs between two exports of the same versions."""
    return write_documents(map(written, exports))


def write_zip(exports: Sequence[Export], *, exported_at: datetime, product_version: str) -> bytes:
    texts = {f"{FOLDER}/{name}": text for name, text in write_files(exports).items()}
    listed = [_listed(export, name, text) for export, (name, text) in zip(exports, texts.items(), strict=True)]
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "product_version": product_version,
        "exported_at": exported_at.isoformat(timespec="seconds"),
        "knowledge_bases": listed,
    }
    return pack({MANIFEST: json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", **texts}, made_at=exported_at)


def write_files(exports: Sequence[Export]) -> dict[str, str]:
    """A YAML text a knowledge base, by file name and in their order."""
    found: dict[str, str] = {}
    for export in exports:
        stem = slug(export.name)
        name, count = f"{stem}.yaml", 1
        while name in found:
            count += 1
            name = f"{stem}-{count}.yaml"
        found[name] = write_document(written(export))
    return found


def written(export: Export) -> dict[str, Any]:
    """The document with the id that it has here, by which `apply` finds it again."""
    return {"id": str(export.id), **export.document}


def slug(name: str) -> str:
    """A name as a file may be called on every system."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80].strip("-") or "knowledge-base"


def _listed(export: Export, file: str, text: str) -> dict[str, Any]:
    return {
        "file": file,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "id": str(export.id),
        "name": export.name,
        "version": export.version,
        "embedding_model": export.document["embedding_model"],
        "secrets": secret_names(export.document),
    }
