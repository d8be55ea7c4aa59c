"""Messages as Outlook saves them, and the OLE2 container that they stand in."""

import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Tree: TypeAlias = "Mapping[str, bytes | Tree]"
SECTOR, MINI, LEAST = 512, 64, 4_096
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def ole2(tree: Tree) -> bytes:
    """A container with these storages and streams; short streams stand in the mini stream, as in real files."""
    entries: list[dict[str, object]] = [{"name": "Root Entry", "kind": 5, "child": FREE, "right": FREE, "content": b""}]
    _collect(tree, 0, entries)
    mini, mini_fat = b"", []
    for entry in entries[1:]:
        content = entry["content"]
        if isinstance(content, bytes) and len(content) < LEAST:
            entry["start"] = len(mini_fat) if content else END
            mini_fat += _chain(len(mini_fat), -(-len(content) // MINI))
            mini += content.ljust(-(-len(content) // MINI) * MINI, b"\0")
    entries[0]["content"] = mini
    large = [entry for entry in entries if entry["kind"] == 5 or len(entry["content"]) >= LEAST]  # type: ignore[arg-type]
    mini_table = struct.pack(f"<{len(mini_fat)}I", *mini_fat)
    directory_size = -(-len(entries) * 128 // SECTOR)
    sizes = [directory_size, -(-len(mini_table) // SECTOR), *(-(-len(entry["content"]) // SECTOR) for entry in large)]  # type: ignore[arg-type]
    fat_size = -(-sum(sizes) // (SECTOR // 4 - 1))
    fat, starts = [FAT] * fat_size, []
    for size in sizes:
        starts.append(len(fat) if size else END)
        fat += _chain(len(fat), size)
    fat += [FREE] * (fat_size * SECTOR // 4 - len(fat))
    for entry, start in zip(large, starts[2:], strict=True):
        entry["start"] = start
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIII", 0, fat_size, starts[0], 0, LEAST, starts[1], sizes[1], END, 0)
    header += struct.pack("<109I", *range(fat_size), *([FREE] * (109 - fat_size)))
    body = struct.pack(f"<{len(fat)}I", *fat) + b"".join(map(_entry, entries)).ljust(directory_size * SECTOR, b"\0")
    return header + body + _filled(mini_table) + b"".join(_filled(entry["content"]) for entry in large)  # type: ignore[arg-type]


def properties(values: Mapping[int, str | bytes], numbers: Mapping[int, int] | None = None, *, head: int) -> dict[str, bytes]:
    """Strings and bytes as streams, numbers (8 bytes each) in the table behind a head of so many bytes."""
    streams = {
        f"__substg1.0_{number:04X}{'001F' if isinstance(value, str) else '0102'}": value.encode("utf-16-le")
        if isinstance(value, str)
        else value
        for number, value in values.items()
    }
    table = b"".join(struct.pack("<HHIQ", 3, number, 0, value) for number, value in (numbers or {}).items())
    return {**streams, "__properties_version1.0": bytes(head) + table}


def message(
    values: Mapping[int, str | bytes],
    *,
    numbers: Mapping[int, int] | None = None,
    to: Sequence[tuple[str, str]] = (),
    attachments: Sequence[Mapping[int, "str | bytes | Tree"]] = (),
    head: int = 32,
) -> dict[str, "bytes | Tree"]:
    """The tree of a message. Of an attachment, 0x3701 is its bytes, or the tree of a message (`head=24`)."""
    tree: dict[str, bytes | Tree] = dict(properties(values, numbers, head=head))
    for number, (name, address) in enumerate(to):
        tree[f"__recip_version1.0_#{number:08X}"] = properties({0x3001: name, 0x39FE: address}, {0x0C15: 1}, head=8)
    for number, each in enumerate(attachments):
        inner = {0x3701: each[0x3701]} if isinstance(each.get(0x3701), dict) else {}
        storage: dict[str, bytes | Tree] = dict(properties({key: value for key, value in each.items() if key not in inner}, head=8))  # type: ignore[misc]
        if inner:
            storage["__substg1.0_3701000D"] = inner[0x3701]  # type: ignore[assignment]
        tree[f"__attach_version1.0_#{number:08X}"] = storage
    return tree


def _collect(tree: Tree, parent: int, entries: list[dict[str, object]]) -> None:
    before = None
    for name, content in tree.items():
        number = len(entries)
        is_stream = isinstance(content, bytes)
        entries.append(
            {"name": name, "kind": 2 if is_stream else 1, "child": FREE, "right": FREE, "content": content if is_stream else b""}
        )
        entries[number]["start"] = END
        if before is None:
            entries[parent]["child"] = number
        else:
            entries[before]["right"] = number
        before = number
        if not isinstance(content, bytes):
            _collect(content, number, entries)


def _entry(entry: dict[str, object]) -> bytes:
    name = str(entry["name"]).encode("utf-16-le") + b"\0\0"
    size = len(entry["content"])  # type: ignore[arg-type]
    fields = (len(name), entry["kind"], 1, FREE, entry["right"], entry["child"], entry["start"], size, 0)
    return name.ljust(64, b"\0") + struct.pack("<HBBIII36xIII", *fields)


def _chain(start: int, count: int) -> list[int]:
    return [*range(start + 1, start + count), END] if count else []


def _filled(content: bytes) -> bytes:
    return content.ljust(-(-len(content) // SECTOR) * SECTOR, b"\0")
