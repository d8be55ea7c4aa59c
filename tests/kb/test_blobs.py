"""Stored bytes: one copy per content and organization, checked when read, collected a day after their last use."""

import errno
import os
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from config.errors import StoredDamaged, Unavailable
from kb import blobs
from kb.folder import MARKER, is_mounted
from kb.models import Blob, Document, File

pytestmark = pytest.mark.django_db


def age(blob: Blob, hours: float) -> None:
    Blob.objects.filter(id=blob.id).update(touched_at=timezone.now() - timedelta(hours=hours))


def test_equal_contents_are_stored_once_in_an_organization_and_never_across(organization, other_organization):
    first = blobs.store_bytes(organization.id, b"the same")
    assert blobs.store_stream(organization.id, BytesIO(b"the same")).id == first.id
    other = blobs.store_bytes(other_organization.id, b"the same")
    assert (other.id, other.storage_key) != (first.id, first.storage_key)


def test_many_texts_come_back_in_their_order(organization):
    known = blobs.store_bytes(organization.id, b"zwei")
    stored = blobs.store_texts(organization.id, ["eins", "zwei", "eins"])
    assert [blobs.read_text(blob) for blob in stored] == ["eins", "zwei", "eins"]
    assert stored[1].id == known.id
    assert stored[0].id == stored[2].id


def test_what_did_not_fit_on_the_disk_leaves_nothing_there(organization):
    class TooLarge(BytesIO):
        def read(self, size: int = -1) -> bytes:
            if self.tell() and self.written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().read(size)

        written = False

        def seek(self, *position: int) -> int:
            self.sought = getattr(self, "sought", 0) + 1
            self.written = self.sought > 1  # the second reading is the one that is stored
            return super().seek(*position)

    with pytest.raises(Unavailable, match="No space left"):
        blobs.store_stream(organization.id, TooLarge(bytes(300_000)))
    folder = Path(default_storage.path(str(organization.id)))
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert not Blob.objects.exists()


def test_a_damaged_file_is_not_handed_out(organization):
    blob = blobs.store_bytes(organization.id, b"right")
    with open(default_storage.path(blob.storage_key), "wb") as file:
        file.write(b"wrong")
    with pytest.raises(StoredDamaged, match="damaged"):
        blobs.read_bytes(blob)
    with pytest.raises(StoredDamaged, match="damaged") as caught, blobs.local_path(blob):
        pass
    assert (caught.value.reason, caught.value.retires, caught.value.transient) == ("stored_damaged", False, False)
    assert not blobs.is_whole(blob)


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"wrong")], ids=["missing", "damaged"])
def test_storing_the_same_again_mends_what_was_lost(organization, damage):
    blob = blobs.store_bytes(organization.id, b"right")
    damage(Path(default_storage.path(blob.storage_key)))
    assert blobs.store_stream(organization.id, BytesIO(b"right")).id == blob.id
    blob.refresh_from_db()
    assert blobs.read_bytes(blob) == b"right"


def test_a_missing_file_says_so(organization):
    blob = blobs.store_bytes(organization.id, b"here")
    default_storage.delete(blob.storage_key)
    with pytest.raises(StoredDamaged, match="missing"), blobs.local_path(blob):
        pass


def test_a_folder_that_is_not_mounted_is_waited_for(organization, tmp_path, settings):
    blob = blobs.store_bytes(organization.id, b"here")
    storage = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path / "unmounted")}}
    settings.STORAGES = {**settings.STORAGES, "default": storage}
    with pytest.raises(Unavailable, match="Mount it") as caught, blobs.local_path(blob):
        pass
    assert caught.value.transient


def test_a_write_does_not_make_an_unmounted_folder_anew(organization, tmp_path, settings):
    """An upload that made it would let every other file count as lost."""
    blob = blobs.store_bytes(organization.id, b"here")
    there, unmounted = settings.STORAGES, tmp_path / "unmounted"
    storage = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(unmounted)}}
    settings.STORAGES = {**there, "default": storage}
    for place in ("absent", "empty"):
        with pytest.raises(Unavailable, match="Mount it"):
            blobs.store_bytes(organization.id, b"another")
        with pytest.raises(Unavailable, match="Mount it"):
            blobs.read_bytes(blob)
        with pytest.raises(Unavailable, match="Mount it"):
            blobs.is_there(blob)
        assert unmounted.exists() is (place == "empty")
        unmounted.mkdir(exist_ok=True)
    (unmounted / MARKER).touch()  # the operator says that the old one is lost
    assert blobs.read_bytes(blobs.store_bytes(organization.id, b"another")) == b"another"
    with pytest.raises(StoredDamaged, match="missing"):
        blobs.read_bytes(blob)
    settings.STORAGES = there
    assert blobs.read_bytes(blob) == b"here"


def test_a_folder_from_before_the_marker_gets_one(organization):
    blobs.store_bytes(organization.id, b"here")
    marker = Path(default_storage.path(MARKER))
    marker.unlink()
    assert is_mounted()
    blobs.store_bytes(organization.id, b"another")
    assert marker.is_file()


@pytest.mark.parametrize(("hours", "collected"), [(25, 1), (23, 0)])
def test_what_nothing_names_goes_after_a_day(organization, hours, collected):
    blob = blobs.store_bytes(organization.id, f"old {hours}".encode())
    age(blob, hours)
    assert blobs.collect() == collected
    assert default_storage.exists(blob.storage_key) is not bool(collected)


def test_what_is_named_stays(organization, knowledge_base, source):
    blob = blobs.store_bytes(organization.id, b"named")
    File.objects.create(organization=organization, blob=blob, name="a", size=5, sha256=bytes(blob.sha256))
    age(blob, 1000)
    assert blobs.collect() == 0


def test_the_day_counts_from_the_last_reference(organization, knowledge_base, source):
    """A backup that copies files after the dump of the database still finds what was deleted in between."""
    content, markdown = (blobs.store_bytes(organization.id, text) for text in (b"file", b"markdown"))
    file = File.objects.create(organization=organization, blob=content, name="a", size=4, sha256=bytes(content.sha256))
    document = Document.objects.create(
        organization=organization, knowledge_base=knowledge_base, source=source, key="a", key_hash=b"a" * 16, file=file, markdown=markdown
    )
    for blob in (content, markdown):
        age(blob, 1000)
    document.delete()
    file.delete()
    assert blobs.collect() == 0
    for blob in (content, markdown):
        age(blob, 25)
    assert blobs.collect() == 2


def test_a_document_that_leaves_its_markdown_touches_it(organization, knowledge_base, source):
    old, new = (blobs.store_bytes(organization.id, text) for text in (b"old", b"new"))
    document = Document.objects.create(
        organization=organization, knowledge_base=knowledge_base, source=source, key="a", key_hash=b"a" * 16, markdown=old
    )
    age(old, 1000)
    Document.objects.filter(id=document.id).update(markdown=new)
    assert blobs.collect() == 0
