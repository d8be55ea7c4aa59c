"""Fields, defaults and ranges of the knowledge base document, each limit from both sides."""

import copy
import json
from typing import Any

import pytest

from config.addresses import parse_networks
from config.errors import InvalidInput
from kb.schemas import Rules, dump, load
from kb.schemas.retrieval_settings import RetrievalSettings

SITE = {"name": "site", "web": {"start_url": "https://docs.example.com/"}}
FILES = {"name": "files", "type": "upload"}


def document(path: str = "", value: Any = None) -> dict[str, Any]:
    """A valid document with one value set; `sources.0` is a site, `sources.1` holds files."""
    values: dict[str, Any] = copy.deepcopy({"name": "Handbooks", "sources": [SITE, FILES]})
    if path:
        *parents, last = path.split(".")
        place: Any = values
        for key in parents:
            place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
        place[last] = value
    return values


def refusal(values: Any, *, rules: Rules | None = None) -> list[dict[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        load(values, strict=True, rules=rules or Rules())
    return caught.value.extra["errors"]


def test_defaults_are_those_of_the_product() -> None:
    values = dump(load(document(), strict=True))
    site, files = values.pop("sources")
    assert values.pop("retrieval") == dump(RetrievalSettings())
    assert values == {
        "schema": 1,
        "name": "Handbooks",
        "description": "",
        "embedding_model": None,
        "store": {"type": "pgvector", "parameters": {}},
        "chunking": {"strategy": "structure", "target_tokens": "auto", "overlap": 0.08, "min_chars": 120, "tokenizer": "model"},
        "budget": {"monthly_tokens": None, "monthly_cost": None},
        "visibility": "private",
        "language": "auto",
        "metadata": {},
    }
    settings = {
        "max_content_length": 100_000,
        "max_bytes_per_page": 5_242_880,
        "comments": False,
        "max_segments_per_run": 20_000,
        "cost_per_thousand_segments": None,
        "tombstone_after_missed_runs": 2,
        "max_deletion_share": 0.5,
        "time_budget_minutes": 10,
        "tables": "auto",
        "ocr": "auto",
    }
    web = {
        "start_url": "https://docs.example.com/",
        "same_site_only": True,
        "include_subdomains": False,
        "path_prefix": "/",
        "max_depth": 3,
        "max_pages": 200,
        "exclude_patterns": [],
        "include_patterns": [],
        "sitemap_urls": [],
        "request_delay_ms": 500,
        "timeout_seconds": 15,
        "user_agent": None,
        "respect_robots": True,
        "include_linked_files": True,
        "render": "never",
    }
    upload = {"max_files": 500, "max_file_bytes": 26_214_400, "max_total_bytes": 524_288_000}
    common, of_files = {"id": None, "enabled": True, "cron": None}, settings | {"max_content_length": 2_000_000}
    assert site == {**common, "settings": settings, "name": "site", "type": "web", "web": web, "upload": None}
    assert files == {**common, "settings": of_files, "name": "files", "type": "upload", "web": None, "upload": upload}


def test_a_dump_says_everything_and_loads_to_itself() -> None:
    values = dump(load(document("chunking", {"strategy": "transcript"}), strict=True))
    assert json.loads(json.dumps(values)) == values
    assert dump(load(values, strict=True)) == values
    assert values["chunking"]["target_tokens"] == 450
    assert values["chunking"]["overlap"] == 0.15
    assert values["sources"][1]["type"] == "upload"


@pytest.mark.parametrize(
    ("path", "accepted", "refused"),
    [
        ("name", ["a", "x" * 200, "Grüße 🙂"], ["", "  ", "x" * 201, "a\x00b", "a\nb", "a\ud800", "​", 5, None, "${secret:A}"]),
        ("description", ["", "two\nlines"], ["a\x00", "\udfff", "x" * 10_001, 1, None]),
        ("embedding_model", [None, "m"], ["", 3]),
        ("schema", [1], [0, 2, True, "1", 1.5]),
        ("visibility", ["private", "organization"], ["public", None, ""]),
        ("language", ["auto", "simple", "english", "de", "zh"], ["klingon", "", 7, None]),
        ("store.type", ["pgvector", "memory"], ["qdrant", "chroma", "elasticsearch", "mongodb-atlas", "in-memory", None]),
        ("store.parameters", [{}], [{"table": "x"}, {"host": "db"}, [], None]),
        ("chunking.strategy", ["structure", "recursive", "transcript"], ["paragraph", None]),
        ("chunking.target_tokens", ["auto", 32, 8000], [31, 8001, "400", 400.0, True, None]),
        ("chunking.overlap", [0, 0.0, 0.5, 1, 399, 20.0], [0.51, 0.99, -0.1, 1.5, 400, "0.1", True, float("nan"), float("inf"), None]),
        ("chunking.min_chars", [0, 10_000], [-1, 10_001, 1.0, "1"]),
        ("chunking.tokenizer", ["model", "estimate", "cl100k_base", "o200k_base"], ["p50k_base"]),
        ("retrieval.mode", ["vector", "keyword", "hybrid"], ["bm25"]),
        ("retrieval.max_results", [1, 100], [0, 101, "5", True]),
        ("retrieval.min_score", [0, 1, 0.5, {"vector": 0}, {"keyword": 1.0}], [-0.1, 1.1, "0.3", True, None, [], {"cosine": 1}]),
        ("retrieval.neighbours", [0, 5], [-1, 6]),
        ("retrieval.rerank", [None, "name"], ["", 1, {}]),
        ("sources", [[], [SITE]], [{}, None, [None], ["site"], [SITE, {**SITE, "name": "SITE "}]]),
        ("sources.0.id", [None, "0190b7e5a1f07c3e9d5b0a1c2d3e4f50"], ["", "a b", 5, "mine"]),
        ("sources.0.name", ["x"], ["", None, "files", "FILES"]),
        ("sources.0.type", ["web"], ["upload", "ftp", None]),
        ("sources.0.enabled", [True, False], [0, "true", None]),
        ("sources.0.web.max_depth", [1, 20], [0, 21]),
        ("sources.0.web.max_pages", [1, 50_000], [0, 50_001]),
        ("sources.0.web.request_delay_ms", [0, 60_000], [-1, 60_001]),
        ("sources.0.web.timeout_seconds", [1, 300], [0, 301]),
        ("sources.0.web.exclude_patterns", [[], ["/a/**", "*.pdf"]], [[""], ["https://a.example/x"], ["/***"], ["*a" * 20], "/a", [1]]),
        ("sources.0.web.include_patterns", [[], ["/a/**", "*.html"]], [[""], ["https://a.example/x"], ["/***"], "/a"]),
        ("sources.0.web.sitemap_urls", [[], ["https://a.example/s.xml"] * 20], [["https://a.example/s.xml"] * 21, ["ftp://a.example"]]),
        ("sources.0.web.user_agent", [None, "Bot/1"], ["", " ", "a\r\nX: y", "Bücher"]),
        ("sources.0.upload", [None], [{}]),
        ("sources.1.web", [None], [{"start_url": "https://a.example/"}]),
        ("sources.1.upload.max_files", [1, 10_000], [0, 10_001]),
        ("sources.1.upload.max_file_bytes", [1, 52_428_800], [0, 52_428_801]),
        ("sources.1.upload.max_total_bytes", [26_214_400, 21_474_836_480], [26_214_399, 21_474_836_481, 0]),
        ("sources.1.settings.max_content_length", [1], [0, 2**31]),
        ("sources.1.settings.max_bytes_per_page", [1], [0, -1]),
        ("sources.1.settings.max_segments_per_run", [1], [0]),
        ("sources.1.settings.cost_per_thousand_segments", [None, 0, 0.02], [-1, "1"]),
        ("sources.1.settings.tombstone_after_missed_runs", [1], [0]),
        ("sources.1.settings.max_deletion_share", [0, 1, 0.5], [-0.1, 1.1]),
        ("sources.1.settings.time_budget_minutes", [1, 1440], [0, 1441]),
    ],
)
def test_ranges(path: str, accepted: list[Any], refused: list[Any]) -> None:
    for value in accepted:
        load(document(path, value), strict=True)
    for value in refused:
        assert refusal(document(path, value)), f"{path} = {value!r} was accepted"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "http://api.localhost:8000/",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://１２７.0.0.1/",
        "http://10.0.0.7/",
        "http://192.168.1.1:8080/",
        "http://169.254.169.254/latest",
        "http://0.0.0.0/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::a00:1]/",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
        "https://user:pw@docs.example.com/",
        "https://user@docs.example.com/",
        "https://@docs.example.com/",
        "ftp://docs.example.com/",
        "file:///etc/passwd",
        "docs.example.com",
        "//docs.example.com/",
        "https://",
        "https:///path",
        "https://docs.example.com:99999/",
        "https://docs.example.com:0/",
        "https://docs example.com/",
        "https://docs.example.com\\@evil.example/",
        "https://docs..example.com/",
        "https://[::1",
        "https://docs.example.com/" + "x" * 8192,
        "${secret:URL}",
        "",
        7,
        None,
    ],
)
def test_addresses_that_no_source_may_name(url: Any) -> None:
    assert refusal(document("sources.0.web.start_url", url))[0]["path"] == "sources[site].web.start_url"
    assert refusal(document("sources.0.web.sitemap_urls", [url]))[0]["path"].startswith("sources[site].web.sitemap_urls")


@pytest.mark.parametrize(
    "url",
    [
        "https://docs.example.com",
        "HTTP://Docs.Example.com:8080/a?b=c#d",
        "https://bücher.example/",
        "https://93.184.216.34/",
        "https://[2606:4700::1111]/",
        "https://docs.example.com/" + "x" * (8192 - 25),
    ],
)
def test_addresses_that_a_source_may_name(url: str) -> None:
    assert load(document("sources.0.web.start_url", url), strict=True).sources[0].web.start_url == url  # type: ignore[union-attr]


def test_a_private_network_that_the_operator_opened() -> None:
    rules = Rules(allowed_networks=parse_networks("127.0.0.0/8:8001"))
    load(document("sources.0.web.start_url", "http://127.0.0.1:8001/"), strict=True, rules=rules)
    assert refusal(document("sources.0.web.start_url", "http://127.0.0.1:8002/"), rules=rules)


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [("docs", "/docs/"), ("/docs", "/docs/"), ("/docs//a/", "/docs/a/"), ("", "/"), ("/", "/"), ("//", "/")],
)
def test_path_prefix_is_normalised(prefix: str, expected: str) -> None:
    assert load(document("sources.0.web.path_prefix", prefix), strict=True).sources[0].web.path_prefix == expected  # type: ignore[union-attr]


@pytest.mark.parametrize("prefix", ["/a?b", "/a#b", "/../a", "/a/./b", "a b", "a\\b"])
def test_path_prefix_that_is_no_path(prefix: str) -> None:
    assert refusal(document("sources.0.web.path_prefix", prefix))


def test_a_web_source_needs_its_block() -> None:
    [error] = refusal({"name": "kb", "sources": [{"name": "site"}]})
    assert error["path"] == "sources[site].web"
    assert "is required" in error["message"]


def test_names_are_composed_and_stripped() -> None:
    kb = load({"name": "  Re\u0301sume\u0301 ", "sources": []}, strict=True)
    assert kb.name == "R\u00e9sum\u00e9"
    both = [{"name": "re\u0301sume\u0301", "type": "upload"}, {"name": "R\u00c9SUM\u00c9", "type": "upload"}]
    assert "two sources named" in refusal({"name": "kb", "sources": both})[0]["message"]


def test_one_name_object_used_twice_is_still_twice() -> None:
    source = {"name": "files", "type": "upload"}
    assert refusal({"name": "kb", "sources": [source, source]})


def test_two_sources_with_one_id() -> None:
    sources = [{"name": name, "type": "upload", "id": "0190b7e5-a1f0-7c3e-9d5b-0a1c2d3e4f50"} for name in ("one", "two")]
    assert "the same id" in refusal({"name": "kb", "sources": sources})[0]["message"]


def test_a_stored_document_outlives_the_rules_it_was_published_under() -> None:
    values = document("store", {"type": "qdrant", "parameters": {"host": "q", "new_option": 1}})
    values["from_a_newer_server"] = {"x": 1}
    values["sources"][0] |= {"cron": "* * * * *", "web": {"start_url": "http://10.0.0.1/", "also_new": True}}
    assert refusal(values)
    kb = load(values, strict=False, rules=Rules(min_interval_seconds=3600))
    assert kb.store.type == "qdrant"
    assert "from_a_newer_server" not in dump(kb)
    assert kb.sources[0].cron == "* * * * *"


def test_a_store_is_accepted_once_it_is_registered() -> None:
    rules = Rules(known_stores=frozenset({"pgvector", "qdrant"}))
    load(document("store", {"type": "qdrant", "parameters": {"host": "q.example.com", "api_key": "${secret:Q}"}}), strict=True, rules=rules)
    [error] = refusal(document("store", {"type": "qdrant", "parameters": {"api_key": "abc"}}), rules=rules)
    assert "${secret:NAME}" in error["message"]
    assert "abc" not in error["message"]
    assert "not available yet" in refusal(document("store", {"type": "memory"}), rules=rules)[0]["message"]


@pytest.mark.parametrize("values", [None, [], "kb", 5])
def test_what_is_no_object(values: Any) -> None:
    with pytest.raises(InvalidInput, match="is an object"):
        load(values, strict=True)


def test_documents_do_not_change_in_place() -> None:
    kb = load(document(), strict=True)
    with pytest.raises(ValueError, match="frozen"):
        kb.name = "other"  # type: ignore[misc]
