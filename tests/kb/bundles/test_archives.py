"""ZIP bundles: what is damaged, swollen or named to deceive is refused with a sentence."""

import io
import json
import struct
import warnings
import zipfile
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID

import pytest

from config.errors import InvalidInput, LecternError, TooLarge
from kb import schemas
from kb.bundles import Export, read_bundle, write_zip
from kb.bundles.archives import MAX_UNPACKED, unpack
from kb.bundles.base import MAX_KNOWLEDGE_BASES

NOW = datetime(2026, 12, 1, 10, 0, 0, tzinfo=UTC)
KB = UUID("01a22ef9-8312-77e2-8974-e485da21d41b")


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of duplicate names
        for name, content in members:
            archive.writestr(name, content)
    return target.getvalue()


def bundle(*names: str) -> bytes:
    exports = [Export(KB, 3, schemas.dump(schemas.load({"name": name, "embedding_model": "local"}))) for name in names]
    return write_zip(exports, exported_at=NOW, product_version="1.2.3")


def read(data: bytes):
    return read_bundle(data, name="b.zip", known_stores={"pgvector"})


def repacked(data: bytes, **changed: str | None) -> bytes:
    """The archive with members replaced (`manifest_json=…`), removed (None) or added."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name, text in changed.items():
        key = next((member for member in members if member.replace("-", "_").replace(".", "_").endswith(name)), name)
        members.pop(key, None)
        if text is not None:
            members[key] = text.encode()
    return zipped(*members.items())


def link() -> zipfile.ZipInfo:
    member = zipfile.ZipInfo("a.yaml")
    member.external_attr = 0o120777 << 16
    return member


def encrypted() -> bytes:
    data = bytearray(zipped(("a.yaml", "name: a")))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.index(signature) + offset
        data[at : at + 2] = struct.pack("<H", 1)
    return bytes(data)


def test_a_bundle_has_a_manifest_and_a_file_for_each():
    data = bundle("Handbooks", "Händbücher", "日本語", "日本")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert {key: manifest[key] for key in ("format", "format_version", "product_version", "exported_at")} == {
        "format": "lectern-knowledge-bases",
        "format_version": 1,
        "product_version": "1.2.3",
        "exported_at": "2026-12-01T10:00:00+00:00",
    }
    files = [row["file"].removeprefix("knowledge-bases/") for row in manifest["knowledge_bases"]]
    assert files == ["handbooks.yaml", "handbucher.yaml", "knowledge-base.yaml", "knowledge-base-2.yaml"]
    assert manifest["knowledge_bases"][0] | {"sha256": ""} == {
        "file": "knowledge-bases/handbooks.yaml",
        "sha256": "",
        "id": str(KB),
        "name": "Handbooks",
        "version": 3,
        "embedding_model": "local",
        "secrets": [],
    }
    entries, notes = read(data)
    assert ({entry.document["name"] for entry in entries}, {entry.id for entry in entries}, notes) == (
        {"Handbooks", "Händbücher", "日本語", "日本"},
        {KB},
        [],
    )


def test_a_zip_without_a_manifest_is_read_too_and_what_file_managers_add_is_not():
    data = zipped(("a/", ""), ("a/b.yaml", "name: b"), ("c.json", '{"name": "c"}'), ("__MACOSX/._a", "x"), ("a/.DS_Store", "x"))
    entries, _ = read(data)
    assert [(entry.where, entry.document) for entry in entries] == [("b.zip/a/b.yaml", {"name": "b"}), ("b.zip/c.json", {"name": "c"})]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"handbooks_yaml": "name: Other"}, "checksum differs"),
        ({"handbooks_yaml": None}, "does not hold it"),
        ({"extra.yaml": "name: x"}, "does not list"),
        ({"manifest_json": "[]"}, "something else"),
        ({"manifest_json": '{"format": "other"}'}, "something else"),
        ({"manifest_json": '{"format": "lectern-knowledge-bases", "format_version": 2}'}, "Upgrade Lectern"),
        ({"manifest_json": '{"format": "lectern-knowledge-bases", "format_version": 1}'}, "does not list its files"),
        ({"manifest_json": '{"format": "a", "format": "b"}'}, "stands twice"),
    ],
)
def test_a_manifest_that_does_not_fit(changes, message):
    with pytest.raises(InvalidInput, match=message):
        read(repacked(bundle("Handbooks"), **changes))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (zipped(("../a.yaml", "name: a")), "leads out"),
        (zipped(("/etc/a.yaml", "name: a")), "leads out"),
        (zipped(("a/../../b.yaml", "name: a")), "leads out"),
        (zipped(("a\\b.yaml", "name: a")), "no plain path"),
        (zipped(("C:a.yaml", "name: a")), "no plain path"),
        (zipped(("a\nb.yaml", "name: a")), "no plain path"),
        (zipped(("a.yaml", "name: a"), ("a.yaml", "name: b")), "twice"),
        (zipped(("a.yaml", "name: a"), ("A.YAML", "name: b")), "twice"),
        (zipped((link(), "/etc/passwd")), "is a link"),
        (zipped(("a.yaml", "name: a"), compression=zipfile.ZIP_LZMA), "packed in a way"),
        (encrypted(), "encrypted"),
        (zipped(("notes.pdf", "%PDF")), "no configuration"),
        (zipped(("a.yaml", b"name: \xff")), "neither a ZIP nor UTF-8"),
        (zipped(("a.yaml", "")), "holds no knowledge base"),
        (zipped(), "holds no knowledge base"),
        (zipped(("a.yaml", "name: a"))[:-10], "damaged"),
        (zipped(("a.yaml", "name: a" * 100)).replace(b"\x4b\x4c", b"\x00\x00", 1)[:60] + b"\0" * 40, "damaged"),
        (b"PK\x03\x04" + b"\0" * 100, "damaged"),
        (b"", "holds no knowledge base"),
        (b"\x89PNG\r\n\x1a\n", "neither a ZIP nor UTF-8"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,  # an archive holds the time, and workers must find the same tests
)
def test_what_is_no_bundle_is_refused(data, message):
    with pytest.raises(InvalidInput, match=message):
        read(data)


def test_bombs_are_cut_short():
    swollen = zipped(("a.yaml", b" " * (MAX_UNPACKED + 1)))
    assert len(swollen) < 50_000
    with pytest.raises(TooLarge, match="once unpacked"):
        unpack(swollen)
    with pytest.raises(TooLarge, match="once unpacked"):
        unpack(zipped(*((f"{number}.yaml", b" " * (MAX_UNPACKED // 4 + 1)) for number in range(4))))
    lying = bytearray(swollen)
    at = lying.index(b"PK\x01\x02") + 24
    lying[at : at + 4] = struct.pack("<I", 10)  # says that it is ten bytes long
    with pytest.raises(LecternError):
        unpack(bytes(lying))
    with pytest.raises(TooLarge, match="more than 2,000 members"):
        unpack(zipped(*((str(number), b"") for number in range(2001))))
    with pytest.raises(TooLarge, match="at most 2,000,000 are taken"):
        read(zipped(*((f"{number}.yaml", b" " * 900_000) for number in range(3))))
    with pytest.raises(TooLarge, match="at most 4,194,304"):
        unpack(b"PK\x03\x04" + b"\0" * 5_000_000)
    with pytest.raises(InvalidInput, match=f"at most {MAX_KNOWLEDGE_BASES}"):
        read("\n---\n".join(f"name: a{number}" for number in range(MAX_KNOWLEDGE_BASES + 1)).encode())


def test_damage_anywhere_is_a_sentence():
    """Bytes of a bundle flipped: read as it was or refused, never another error."""
    data = bundle("Handbooks")
    whole = read(data)
    for position in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        with suppress(LecternError):
            assert read(bytes(damaged)) == whole
