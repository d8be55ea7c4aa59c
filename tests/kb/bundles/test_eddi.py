"""Knowledge bases of EDDI: what has a counterpart is converted, and all that is not is told."""

import io
import json
import zipfile

import pytest

from kb import schemas
from kb.bundles import read_bundle
from kb.bundles.eddi import is_eddi, map_knowledge_base

DOCUMENT = {
    "name": "Product docs",
    "embeddingProvider": "openai",
    "embeddingParameters": {"model": "text-embedding-3-large", "apiKey": "${vault:acme/agent/openai-key}"},
    "storeType": "in-memory",
    "storeParameters": None,
    "storeNamespace": "id",
    "chunkStrategy": "paragraph",
    "chunkSize": 512,
    "chunkOverlap": 64,
    "maxResults": 7,
    "minScore": 0.6,
    "sources": [
        {
            "id": "abc",
            "name": "site",
            "type": "web",
            "enabled": True,
            "cron": "0 3 * * *",
            "web": {
                "startUrl": "https://docs.example.com/",
                "sameSiteOnly": True,
                "includeSubdomains": True,
                "pathPrefix": "/docs",
                "maxDepth": 4,
                "maxPages": 500,
                "excludePatterns": ["/archive/**"],
                "sitemapUrls": ["https://docs.example.com/map.xml"],
                "requestDelayMs": 250,
                "timeoutSeconds": 20,
                "userAgent": "EDDI-Crawler/1.0 (+https://eddi.labs.ai)",
                "respectRobots": False,
                "renderMode": "full",
            },
            "upload": None,
            "settings": {
                "maxContentLength": 5000,
                "maxBytesPerPage": 1000,
                "maxSegmentsPerRun": 100,
                "costPerThousandSegments": 0.02,
                "tombstoneAfterMissedRuns": 3,
                "timeBudgetMinutes": 30,
            },
        },
        {"name": "files", "type": "upload", "upload": {"maxFiles": 10, "maxFileBytes": 1000, "maxTotalBytes": 5000}},
    ],
}


def mapped(document, stores=("pgvector",)):
    made, notes = map_knowledge_base(document, known_stores=stores)
    return made, {note.path: note for note in notes}


def test_every_field_of_it_arrives_or_is_told():
    made, notes = mapped(DOCUMENT)
    document = schemas.load(made)
    assert (document.name, document.embedding_model, document.store.type) == ("Product docs", "openai/text-embedding-3-large", "pgvector")
    assert (document.chunking.strategy, document.chunking.target_tokens, document.chunking.overlap) == ("recursive", 128, 0.125)
    assert (document.retrieval.max_results, document.retrieval.min_score.vector) == (7, 0.2)
    site, files = document.sources
    expected = {
        "start_url": "https://docs.example.com/",
        "include_subdomains": True,
        "path_prefix": "/docs/",
        "max_depth": 4,
        "max_pages": 500,
        "exclude_patterns": ["/archive/**"],
        "sitemap_urls": ["https://docs.example.com/map.xml"],
        "request_delay_ms": 250,
        "timeout_seconds": 20,
        "respect_robots": False,
        "user_agent": None,
    }
    assert schemas.dump(site.web) | expected == schemas.dump(site.web)
    settings = schemas.dump(site.settings)
    assert [settings[key] for key in ("max_content_length", "max_bytes_per_page", "max_segments_per_run")] == [5000, 1000, 100]
    assert [settings[key] for key in ("tombstone_after_missed_runs", "time_budget_minutes")] == [3, 30]
    assert (site.id, site.cron, site.enabled, files.upload.max_files) == (None, "0 3 * * *", True, 10)
    assert set(notes) == {
        "embeddingProvider",
        "embeddingParameters.apiKey",
        "storeType",
        "storeNamespace",
        "chunkStrategy",
        "chunkSize",
        "chunkOverlap",
        "minScore",
        "sources[site].web.renderMode",
        "sources[site].web.userAgent",
    }
    assert (notes["chunkSize"].old, notes["chunkSize"].new) == (512, 128)
    assert (notes["minScore"].old, notes["minScore"].new) == (0.6, 0.2)


def test_absent_fields_get_our_defaults_without_a_word():
    made, notes = mapped({"name": "a", "minScore": None, "chunkSize": None, "sources": None})
    assert (made, notes) == ({"name": "a", "sources": []}, {})


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"chunkSize": 10}, {"chunking": {"target_tokens": 32}}),
        ({"chunkSize": 100_000}, {"chunking": {"target_tokens": 8000}}),
        ({"chunkOverlap": 160}, {"chunking": {"overlap": 0.1}}),
        ({"chunkSize": 100, "chunkOverlap": 90}, {"chunking": {"target_tokens": 32, "overlap": 0.5}}),
        ({"chunkSize": "big"}, {}),
        ({"minScore": 0.3}, {"retrieval": {"min_score": {"vector": 0.0}}}),
        ({"minScore": 1}, {"retrieval": {"min_score": {"vector": 1.0}}}),
        ({"minScore": 7}, {}),
        ({"embeddingProvider": "ollama"}, {"embedding_model": "ollama/nomic-embed-text"}),
        ({"storeType": "qdrant"}, {"store": {"type": "pgvector", "parameters": {}}}),
        ({"storeType": "pgvector", "storeParameters": {"host": "db"}}, {"store": {"type": "pgvector", "parameters": {}}}),
    ],
)
def test_single_fields(values, part):
    made, notes = mapped({"name": "a", **values})
    assert made == {"name": "a", "sources": [], **part}
    assert notes


def test_a_store_that_is_here_keeps_its_parameters_and_secrets_become_references():
    store = {
        "host": "q.example.com",
        "collectionName": "docs",
        "useTls": "true",
        "port": "6334",
        "apiKey": "${vault:acme/qdrant-key}",
        "shards": 3,
    }
    made, notes = mapped({"name": "a", "storeType": "qdrant", "storeParameters": store}, stores=("pgvector", "qdrant"))
    parameters = {"host": "q.example.com", "collection_name": "docs", "use_tls": True, "port": 6333, "api_key": "${secret:qdrant-key}"}
    assert made["store"] == {"type": "qdrant", "parameters": parameters}
    assert set(notes) == {"storeParameters.apiKey", "storeParameters.shards", "storeParameters.port"}


def test_a_secret_in_clear_is_not_repeated():
    _, notes = mapped({"name": "a", "embeddingProvider": "openai", "embeddingParameters": {"apiKey": "sk-in-clear-1234567890"}})
    assert "in-clear" not in str(notes)


def test_a_document_of_ours_with_a_slip_is_not_taken_for_one():
    assert is_eddi({"name": "a", "chunkSize": 3})
    assert is_eddi({"name": "a", "sources": [{"name": "s", "web": {"startUrl": "https://a.example"}}]})
    assert not is_eddi({"name": "a", "sources": [{"name": "s", "web": {"start_url": "https://a.example", "maxPages": 3}}]})
    assert not is_eddi({"name": "a", "retrieval": {}, "maxResults": 3})


def test_an_archive_gives_its_knowledge_bases_once_and_tells_the_rest():
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for folder in ("agent1/1", "agent2/4"):
            archive.writestr(f"{folder}/66f.rag.json", json.dumps(DOCUMENT))
        archive.writestr("agent1/1/a.workflow.json", "{}")
        archive.writestr(
            "agent1/1/77a.rag.json",
            json.dumps({"name": "files", "sources": [{"name": "f", "type": "upload", "settings": {"maxContentLength": 9}}]}),
        )
    entries, notes = read_bundle(target.getvalue(), name="agents.zip", known_stores={"pgvector"})
    assert [(entry.where, entry.document["name"]) for entry in entries] == [
        ("agents.zip/agent1/1/66f.rag.json", "Product docs"),
        ("agents.zip/agent1/1/77a.rag.json", "files"),
    ]
    assert entries[1].document["sources"][0]["settings"] == {"max_content_length": 9}
    assert [note.path for note in notes] == ["agent1/1/a.workflow.json"]
