"""Documents: how they stand, what of them answers, and how they go."""

import pytest

NOTE = b"# Leave\n\nEvery employee has thirty days of leave a year.\n"


@pytest.fixture
def documents(upload, run_now):
    upload(("Leave.md", NOTE), ("Travel.md", b"# Travel\n\nTravel is paid after the trip, with receipts.\n"))
    run_now()


def test_documents_are_listed_page_by_page(viewer, kb_url, documents):
    first = viewer.get(f"{kb_url}/documents?limit=1").json()
    second = viewer.get(f"{kb_url}/documents?limit=1&cursor={first['next_cursor']}").json()
    assert {first["items"][0]["name"], second["items"][0]["name"]} == {"Leave.md", "Travel.md"}
    assert second["next_cursor"] is None
    row = first["items"][0]
    assert (row["state"], row["error"], row["generation"], row["chunks"]) == ("indexed", None, 1, 1)
    assert row["last_ingested_at"]


def test_filters_narrow_the_list(viewer, kb_url, source, source_url, documents):
    def names(query: str) -> list[str]:
        return [row["name"] for row in viewer.get(f"{kb_url}/documents?{query}").json()["items"]]

    assert names("q=leave") == ["Leave.md"]
    assert names("q=100%25") == []
    assert len(names("state=indexed")) == 2
    assert names("state=failed") == []
    assert len(names(f"source_id={source.id}")) == 2
    assert len(viewer.get(f"{source_url}/documents").json()["items"]) == 2
    assert viewer.get(f"{kb_url}/documents?state=lost").status_code == 400
    assert viewer.get(f"{kb_url}/documents?source_id=nonsense").status_code == 404
    assert viewer.get(f"{kb_url}/documents?q=%00").status_code == 400
    assert viewer.get(f"{kb_url}/documents?limit=0").status_code == 400


def test_a_document_shows_its_chunks_with_spans(viewer, kb_url, upload, run_now):
    text = "# Rules\n\n" + "".join(f"## Part {number}\n\n" + f"Sentence {number} of the rules. " * 40 + "\n\n" for number in range(6))
    (row,) = upload(("rules.md", text.encode())).json()["stored"]
    run_now()
    document = viewer.get(f"{kb_url}/documents/{row['file_id']}?limit=3").json()
    chunks = document["chunk_page"]["items"]
    assert [chunk["ordinal"] for chunk in chunks] == [0, 1, 2]
    assert document["chunks"] > 3
    for chunk in chunks:
        assert text[chunk["start"] : chunk["end"]] == chunk["text"]
        assert chunk["heading_path"][0] == "Rules"
    rest = viewer.get(f"/api/v1/documents/{row['file_id']}?cursor={document['chunk_page']['next_cursor']}").json()
    assert rest["chunk_page"]["items"][0]["ordinal"] == 3


def test_a_failure_is_told_and_an_earlier_version_is_not_hidden(editor, kb_url, source, upload, run_now):
    from config.errors import PermanentProviderError
    from ingestion.models import EmbeddedText
    from kb.models import Document

    (row,) = upload(("a.md", NOTE)).json()["stored"]
    run_now()
    upload(("a.md", NOTE + b"\nA sentence that no model can embed.\n"))
    run_id = editor.post(f"/api/v1/knowledge-bases/{source.knowledge_base_id}/sources/{source.id}/run").json()["run_id"]
    from ingestion.stages import slices

    for stage in ("crawl", "extract"):
        slices.work(stage, run_id, f"{run_id}:1")
    EmbeddedText.objects.filter(vector=None).update(error=str(PermanentProviderError("The model refuses this text.")))
    for stage in ("embed", "finish"):
        slices.work(stage, run_id, f"{run_id}:1")
    document = editor.get(f"{kb_url}/documents/{row['file_id']}").json()
    assert (document["state"], document["error"]) == ("failed", "The model refuses this text.")
    assert document["chunks"] == 1
    assert Document.objects.get(id=row["file_id"]).chunks.count() == 1
    assert editor.get(f"/api/v1/runs/{run_id}").json()["status"] == "failed"


def test_a_changed_model_changes_no_document(actor, editor, kb_url, knowledge_base, documents):
    from kb import versioning
    from kb.embedding import ensure_space
    from kb.models import EmbeddingModel

    document = dict(versioning.read(knowledge_base).document)
    ensure_space(EmbeddingModel.objects.create(name="hashing again", provider="hashing", model="h", dimension=256, max_input_tokens=256))
    versioning.publish(knowledge_base, document={**document, "embedding_model": "hashing again"}, expected=1, actor=actor)
    assert {row["state"] for row in editor.get(f"{kb_url}/documents").json()["items"]} == {"indexed"}


def test_delete_removes_the_document_and_its_chunks(editor, viewer, kb_url, documents):
    identifier = editor.get(f"{kb_url}/documents?q=leave").json()["items"][0]["id"]
    assert viewer.delete(f"{kb_url}/documents/{identifier}").status_code == 403
    answer = editor.delete(f"{kb_url}/documents/{identifier}")
    assert (answer.status_code, answer.json()) == (200, {"id": identifier, "status": "deleted", "chunks_removed": 1})
    assert editor.get(f"/api/v1/documents/{identifier}").status_code == 404
    assert editor.delete(f"/api/v1/documents/{identifier}").status_code == 404


def test_a_crawled_page_is_not_deleted_but_excluded(editor, kb_url, knowledge_base, documents):
    from kb.models import Document, Source

    site = Source.objects.create(organization=knowledge_base.organization, knowledge_base=knowledge_base, kind="web", name="site")
    document = Document.objects.filter(knowledge_base=knowledge_base).first()
    Document.objects.filter(id=document.id).update(source=site)
    answer = editor.delete(f"{kb_url}/documents/{document.id}")
    assert answer.status_code == 409
    assert "exclude_patterns" in answer.json()["detail"]


def test_purge_forgets_and_the_next_run_pays_nothing_twice(editor, viewer, kb_url, source_url, documents, run_now):
    assert viewer.delete(f"{source_url}/documents").status_code == 403
    answer = editor.delete(f"{source_url}/documents")
    assert (answer.status_code, answer.json()["status"], answer.json()["documents"]) == (200, "purged", 2)
    rows = editor.get(f"{kb_url}/documents").json()["items"]
    assert [(row["state"], row["chunks"]) for row in rows] == [("changed", 1)] * 2  # they answer until the next run
    counters = run_now().counters
    assert (counters["ingested"], counters["embeddings_computed"]) == (2, 0)


def test_a_purge_with_reembed_pays_again_and_replaces_the_vectors(editor, source_url, source, documents, run_now):
    from kb.models import Chunk

    before = set(Chunk.objects.filter(document__source=source).values_list("id", flat=True))
    assert editor.delete(f"{source_url}/documents?reembed=true").status_code == 200
    assert run_now().counters["embeddings_computed"] == 2
    after = set(Chunk.objects.filter(document__source=source).values_list("id", flat=True))
    assert len(after) == 2
    assert not before & after
    assert editor.delete(f"{source_url}/documents?reembed=maybe").status_code == 400


def test_a_purge_waits_for_no_run(editor, source_url):
    run_id = editor.post(f"{source_url}/run").json()["run_id"]
    answer = editor.delete(f"{source_url}/documents")
    assert (answer.status_code, answer.json()["run_id"]) == (409, run_id)


def test_foreign_documents_are_absent(stranger, kb_url, source_url, documents, editor):
    from uuid import uuid4

    identifier = editor.get(f"{kb_url}/documents").json()["items"][0]["id"]
    for url in (f"{kb_url}/documents/{identifier}", f"/api/v1/documents/{identifier}"):
        assert stranger.get(url).content == stranger.get(f"/api/v1/documents/{uuid4()}").content
        assert stranger.delete(url).status_code == 404
    assert stranger.get(f"{kb_url}/documents").status_code == stranger.get(f"{source_url}/documents").status_code == 404
