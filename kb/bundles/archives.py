"""ZIP archives: members in, members out. Nothing is unpacked to a disk, and nothing is believed that the archive says about itself."""

import io
import stat
import zipfile
import zlib
from collections.abc import Mapping
from datetime import datetime

from config.errors import InvalidInput, TooLarge

MAX_PACKED = 4 * 1024 * 1024
MAX_UNPACKED = 16 * 1024 * 1024
MAX_MEMBERS = 2_000
_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")
_ENTRY = b"PK\x01\x02"
_ENCRYPTED = 0x1
_JUNK = ("__MACOSX/", ".DS_Store", "Thumbs.db")  # what file managers add


def is_archive(data: bytes) -> bool:
    return data.startswith(_BEGINNINGS)


def unpack(data: bytes) -> dict[str, bytes]:
    """Contents of the files by name. InvalidInput for what is damaged, encrypted or named to deceive, TooLarge above a limit."""
    if len(data) > MAX_PACKED:
        raise TooLarge(f"The ZIP has {len(data):,} bytes; at most {MAX_PACKED:,} are taken. Split it.", max_bytes=MAX_PACKED)
    if data.count(_ENTRY) > MAX_MEMBERS:  # counted before the list of members is built
        raise TooLarge(f"The ZIP has more than {MAX_MEMBERS:,} members. Split it.", max_members=MAX_MEMBERS)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _contents(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise InvalidInput(f"The ZIP is damaged or of a kind that is not read ({error}). Export it again.") from None


def _contents(archive: zipfile.ZipFile) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    seen: set[str] = set()
    left = MAX_UNPACKED
    for member in archive.infolist():
        _check(member)
        if member.filename.casefold() in seen:
            raise InvalidInput(f"The ZIP holds '{_shown(member)}' twice (capitals do not count). Keep one.")
        seen.add(member.filename.casefold())
        if member.is_dir() or member.filename.startswith(_JUNK) or member.filename.rpartition("/")[2] in _JUNK:
            continue
        with archive.open(member) as stream:
            content = stream.read(left + 1)
        left -= len(content)
        if left < 0:
            raise TooLarge(f"The ZIP holds more than {MAX_UNPACKED:,} bytes once unpacked. Split it.", max_bytes=MAX_UNPACKED)
        found[member.filename] = content
    return found


def _check(member: zipfile.ZipInfo) -> None:
    name = member.filename
    # `filename` ends at a NUL and has the system's separators replaced; the name as written must say the same.
    if name != member.orig_filename or "\\" in name or ":" in name or not name.isprintable():
        raise InvalidInput(f"The ZIP holds a member named '{_shown(member)}', which is no plain path. Rename it.")
    if name.startswith("/") or any(part in ("", ".", "..") for part in name.removesuffix("/").split("/")):
        raise InvalidInput(f"The ZIP holds '{_shown(member)}', which leads out of the archive. Rename it.")
    if member.flag_bits & _ENCRYPTED:
        raise InvalidInput(f"'{_shown(member)}' in the ZIP is encrypted. Make the ZIP without a password.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidInput(f"'{_shown(member)}' in the ZIP is packed in a way that is not read. Use deflate, the usual one.")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise InvalidInput(f"'{_shown(member)}' in the ZIP is a link. Put the file itself there.")


def _shown(member: zipfile.ZipInfo) -> str:
    return "".join(character if character.isprintable() else "?" for character in member.orig_filename[:200])


def pack(members: Mapping[str, str], *, made_at: datetime) -> bytes:
    """An archive of texts; the same members at the same time give the same bytes."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            member = zipfile.ZipInfo(name, date_time=made_at.timetuple()[:6])
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o100644 << 16
            archive.writestr(member, text.encode())
    return target.getvalue()
