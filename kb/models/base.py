"""What every tenant-owned row has: a time-ordered public id, an organization and a creation time."""

import hashlib
import unicodedata

from django.db import models
from uuid_utils.compat import uuid7

MAX_KEY_LENGTH = 8192


def key_hash(text: str) -> bytes:
    """16 bytes that stand for a URL or file name in unique constraints: a 4,400-character URL breaks a btree row."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def file_key(name: str) -> str:
    """The identity of an uploaded file: its last path segment, NFC and lower case, so that `Résumé.pdf` from two systems is one file."""
    segment = name.replace("\\", "/").rsplit("/", 1)[-1]
    segment = "".join(character for character in segment if unicodedata.category(character)[0] != "C")
    segment = unicodedata.normalize("NFC", segment).strip().lower()[:255]
    return "file" if segment in ("", ".", "..") else segment


class Row(models.Model):
    """A row with a UUIDv7 key, so that ids sort by creation and cannot be guessed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


class TenantRow(Row):
    """A row that belongs to exactly one organization; `kb.access` is the only door to it."""

    organization = models.ForeignKey("kb.Organization", on_delete=models.CASCADE, related_name="+")

    class Meta:
        abstract = True
