"""Files that look like others: archives, Office containers, pictures."""

import zipfile
from collections.abc import Mapping
from io import BytesIO

OLE2_HEADER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 504


def zip_file(parts: Mapping[str, bytes]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def office_file(part: str) -> bytes:
    return zip_file({"[Content_Types].xml": b"<Types/>", part: b"<document/>"})


def encrypted_office_file() -> bytes:
    return OLE2_HEADER + "EncryptedPackage".encode("utf-16-le") + b"\0" * 512
