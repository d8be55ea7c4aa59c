"""Bundles on their way in. The content says what it is: a ZIP, JSON, or one or several documents of YAML."""

import hashlib
import json
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from config.body import parse_json
from config.errors import InvalidInput, TooLarge
from kb.bundles.archives import is_archive, unpack
from kb.bundles.base import MAX_KNOWLEDGE_BASES, Entry, Note
from kb.bundles.eddi import is_eddi, map_knowledge_base
from kb.bundles.texts import read_documents
from kb.bundles.writing import FORMAT, FORMAT_VERSION, MANIFEST

MAX_TEXT = 2_000_000  # some seconds of reading, of all files together
_SUFFIXES = (".yaml", ".yml", ".json")
_EDDI_SUFFIX = ".rag.json"


def read_bundle(data: bytes, *, name: str, known_stores: Collection[str]) -> tuple[list[Entry], list[Note]]:
    """The knowledge bases of a bundle, and what else it held. `name` is what messages call it; stores that are not known here become
    the default one in documents of another product."""
    entries, notes = _read_zip(data, name, known_stores) if is_archive(data) else (_read_text(data, name, known_stores), [])
    if not entries:
        raise InvalidInput(f"{name} holds no knowledge base. Write at least `name: Handbooks`.")
    if len(entries) > MAX_KNOWLEDGE_BASES:
        raise InvalidInput(f"{name} holds {len(entries):,} knowledge bases; at most {MAX_KNOWLEDGE_BASES} are taken. Split it.")
    return entries, notes


def _read_text(data: bytes, name: str, known_stores: Collection[str]) -> list[Entry]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name} is neither a ZIP nor UTF-8 (byte {error.start}). Save it as UTF-8.") from None
    documents = read_documents(text, what=name, max_characters=MAX_TEXT)
    several = len(documents) > 1
    return [
        _entry(document, f"{name}, document {number}" if several else name, known_stores) for number, document in enumerate(documents, 1)
    ]


def _read_zip(data: bytes, name: str, known_stores: Collection[str]) -> tuple[list[Entry], list[Note]]:
    members = unpack(data)
    if MANIFEST in members:
        _check_manifest(members, name)
        wanted = [member for member in members if member != MANIFEST]
    else:
        wanted = [member for member in members if member.endswith(_EDDI_SUFFIX)] or list(members)
    strange = next((member for member in wanted if not member.lower().endswith(_SUFFIXES)), None)
    if strange:
        raise InvalidInput(f"{name} holds '{strange}', which is no configuration. A bundle has no files besides YAML and JSON.")
    if (size := sum(len(members[member]) for member in wanted)) > MAX_TEXT:
        raise TooLarge(f"{name} holds {size:,} bytes of configurations; at most {MAX_TEXT:,} are taken. Split it.", max_bytes=MAX_TEXT)
    contents: set[bytes] = set()
    entries: list[Entry] = []
    for member in sorted(wanted):
        copy = PurePosixPath(member).name.encode() + b"\0" + members[member]
        if member.endswith(_EDDI_SUFFIX) and copy in contents:
            continue  # such an archive repeats a knowledge base in each workflow that binds it
        contents.add(copy)
        entries += _read_text(members[member], f"{name}/{member}", known_stores)
    unread = sorted(set(members) - set(wanted) - {MANIFEST})
    return entries, [Note(member, "is no knowledge base and was not read.") for member in unread]


def _check_manifest(members: dict[str, bytes], name: str) -> None:
    manifest = parse_json(members[MANIFEST])
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InvalidInput(f"{name} has a {MANIFEST} of something else: a bundle's says format: {FORMAT}. Without one it is read too.")
    if manifest.get("format_version") != FORMAT_VERSION:
        shown = json.dumps(manifest.get("format_version"))[:20]
        raise InvalidInput(f"{name} has format version {shown}; this version of Lectern reads {FORMAT_VERSION}. Upgrade Lectern.")
    listed = _listed(manifest, name)
    for file, digest in listed.items():
        if file not in members:
            raise InvalidInput(f"{name} lists '{file}' and does not hold it. Export it again.")
        if hashlib.sha256(members[file]).hexdigest() != digest:
            raise InvalidInput(f"'{file}' in {name} is not what was exported: its checksum differs. If it was edited, remove {MANIFEST}.")
    if extra := sorted(set(members) - set(listed) - {MANIFEST}):
        raise InvalidInput(f"{name} holds '{extra[0]}', which its {MANIFEST} does not list. Remove it, or the manifest.")


def _listed(manifest: dict[str, Any], name: str) -> dict[str, str]:
    rows = manifest.get("knowledge_bases")
    if not isinstance(rows, list):
        rows = [None]
    found: dict[str, str] = {}
    for row in rows:
        if not (isinstance(row, dict) and isinstance(row.get("file"), str) and isinstance(row.get("sha256"), str)):
            raise InvalidInput(f"The {MANIFEST} of {name} does not list its files with their checksums. Export it again.")
        found[row["file"]] = row["sha256"]
    return found


def _entry(document: dict[str, Any], where: str, known_stores: Collection[str]) -> Entry:
    if where.endswith(_EDDI_SUFFIX) or is_eddi(document):
        mapped, notes = map_knowledge_base(document, known_stores=known_stores)
        return Entry(where, mapped, notes=tuple(notes))
    values = dict(document)
    return Entry(where, values, id=_identifier(values.pop("id", None), where))


def _identifier(value: Any, where: str) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(value)
    except (TypeError, ValueError, AttributeError):
        message = "is not the id of a knowledge base. Leave it out to find the knowledge base by its name."
        raise InvalidInput(f"{where}: id {message}", errors=[{"path": "id", "message": message}]) from None


def refuse_repeated(entries: Iterable[Entry]) -> None:
    """Two entries for one knowledge base would undo each other at every `apply`."""
    seen: dict[UUID, str] = {}
    for entry in entries:
        if entry.id in seen:
            raise InvalidInput(f"{seen[entry.id]} and {entry.where} have the same id. Remove one, or leave out its id.")
        if entry.id:
            seen[entry.id] = entry.where
