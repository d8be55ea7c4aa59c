"""What does not agree is found, said and mended: files, documents, chunks, vectors, words and stored bytes."""

import json
import os
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection

from ingestion.models import IngestionRun
from ingestion.services.files import store_files
from ingestion.services.runs import start_run
from ingestion.stages import slices
from kb.models import Chunk, Document
from kb.stores.drift import drift

pytestmark = pytest.mark.django_db


def work(source, alice) -> None:
    run = start_run(source, user=alice)
    for stage in ("crawl", "extract", "embed", "publish", "finish"):
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    assert IngestionRun.objects.get(id=run.id).status == "succeeded"


@pytest.fixture
def indexed(source, alice, organization) -> dict[str, Document]:
    names = ("a.html", "b.html", "c.html")
    store_files(source, [SimpleUploadedFile(name, f"<h1>{name}</h1><p>Thirty days of leave.</p>".encode()) for name in names], user=alice)
    work(source, alice)
    return {document.key: document for document in Document.objects.select_related("markdown", "file__blob")}


def check(organization, *options: str) -> tuple[list[dict], str]:
    out = StringIO()
    try:
        call_command("check_drift", "--json", "--organization", organization.name, *options, stdout=out)
    except CommandError as error:
        return [json.loads(line) for line in out.getvalue().splitlines()], str(error)
    return [json.loads(line) for line in out.getvalue().splitlines()], ""


def run_sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_what_agrees_is_said_to(indexed, organization):
    assert check(organization, "--contents") == ([], "")


def test_lost_vectors_and_words_are_made_again(indexed, organization, source, alice, knowledge_base):
    first, second, third = Chunk.objects.order_by("id").values_list("id", flat=True)
    run_sql(f"DELETE FROM embedding_256 WHERE chunk = {first}")
    run_sql(f"DELETE FROM lexical WHERE chunk = {second}")
    run_sql(f"UPDATE lexical SET chunk = -1 WHERE chunk = {third}")
    found, error = check(organization)
    assert {row["kind"]: row["count"] for row in found} == {"orphan_words": 1, "missing_vectors": 1, "missing_words": 2}
    assert error == "4 things do not agree. --repair mends what can be mended."
    assert drift(knowledge_base).missing_words == 2, "nothing is changed without --repair"
    assert check(organization, "--repair")[1] == ""
    work(source, alice)
    assert drift(knowledge_base).is_clean
    assert check(organization) == ([], "")


def test_a_wrong_count_and_a_lost_text_are_mended(indexed, organization, source, alice):
    Document.objects.filter(key="a.html").update(chunk_count=7)
    default_storage.delete(indexed["b.html"].markdown.storage_key)
    found, _ = check(organization)
    assert {(row["kind"], row["count"], row["examples"][0]) for row in found} == {
        ("chunk_counts", 1, str(indexed["a.html"].id)),
        ("lost_texts", 1, str(indexed["b.html"].id)),
    }
    repaired, error = check(organization, "--repair")
    assert ([row["repaired"] for row in repaired if "repaired" in row], error) == ([1, 1], "")
    assert Document.objects.get(key="a.html").chunk_count == 1
    work(source, alice)
    assert check(organization) == ([], "")


def test_a_lost_file_is_told_and_cannot_be_mended(indexed, organization):
    Path(default_storage.path(indexed["c.html"].file.blob.storage_key)).write_bytes(b"x" * indexed["c.html"].file.size)
    assert check(organization) == ([], ""), "only reading tells that the bytes are others"
    found, error = check(organization, "--contents", "--repair")
    assert [(row["kind"], row["examples"], row["repairable"]) for row in found] == [("lost_files", ["c.html"], False)]
    assert error == "1 thing does not agree."


def test_files_that_no_row_names_go_after_a_day(indexed, organization):
    old, new = (default_storage.save(f"{organization.id}/left/{name}", ContentFile(b"x")) for name in ("old", "new"))
    os.utime(default_storage.path(old), (0, 0))
    out = StringIO()
    call_command("check_drift", "--repair", stdout=out)
    assert "unnamed_files: 1 (" in out.getvalue()
    assert (default_storage.exists(old), default_storage.exists(new)) == (False, True)
    assert all(default_storage.exists(document.file.blob.storage_key) for document in indexed.values())


def test_vectors_of_a_model_that_was_left_are_removed(indexed, organization, knowledge_base):
    from kb.embedding import ensure_space
    from kb.models import EmbeddingModel

    model = EmbeddingModel.objects.create(name="left", provider="hashing", model="left", dimension=256, max_input_tokens=256)
    space = ensure_space(model)
    run_sql(f"INSERT INTO embedding_use (organization, kb, space) VALUES ('{organization.id}', '{knowledge_base.id}', {space.pk})")
    assert [(row["kind"], row["examples"]) for row in check(organization)[0]] == [("left_vectors", [str(space.pk)])]
    assert check(organization, "--repair")[1] == ""
    assert check(organization) == ([], "")


def test_an_unknown_organization_is_told():
    with pytest.raises(CommandError, match="no organization named 'Nobody'"):
        call_command("check_drift", "--organization", "Nobody")
