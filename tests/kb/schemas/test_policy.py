"""The ingest policy: layers, key by key at every depth, strict by path."""

import pytest

from config.errors import InvalidInput
from kb.schemas.chunking import Chunking
from kb.schemas.families import FAMILIES, family_of
from kb.schemas.merging import load_policy, merge_policy
from kb.schemas.policy import Policy

PDF, PNG, WAV = b"%PDF-1.7\n", b"\x89PNG\r\n\x1a\n\0", b"RIFF\0\0\0\0WAVEfmt "


def merged(family="text", *, kb=None, channel=None, upload=None):
    return merge_policy(family=family, chunking=Chunking(**(kb or {})), channel=channel or {}, upload=upload or {})


def test_a_later_layer_wins_key_by_key():
    result = merged(
        kb={"min_chars": 50},
        channel={"chunking": {"target_tokens": 300, "overlap": 20}, "keep_markdown": False},
        upload={"chunking": {"target_tokens": 200}},
    )
    assert result.values["chunking"] == {
        "strategy": "structure",
        "target_tokens": 200,
        "overlap": 20,
        "min_chars": 50,
        "tokenizer": "model",
    }
    assert {path: origin for path, origin in result.origins.items() if origin != "default"} == {
        "mode": "family",
        "chunking.min_chars": "knowledge_base",
        "chunking.overlap": "channel",
        "keep_markdown": "channel",
        "chunking.target_tokens": "upload",
    }


def test_every_key_has_an_origin():
    result = merged("audio", upload={"table": {"name": "calls"}})

    def leaves(values, path=""):
        for key, value in values.items():
            where = f"{path}.{key}" if path else key
            yield from leaves(value, where) if isinstance(value, dict) else [where]

    assert set(leaves(result.values)) == set(result.origins)


def test_a_family_lies_below_the_knowledge_base():
    assert merged("audio").policy.chunking.target_tokens == 450
    assert merged("audio").policy.chunking.strategy == "transcript"
    assert merged("audio", kb={"target_tokens": 250}).policy.chunking.target_tokens == 250
    assert merged("audio", kb={"target_tokens": 250}).policy.chunking.overlap == 0.15


def test_who_chooses_transcripts_means_their_sizes_too():
    result = merged(kb={"target_tokens": 250}, channel={"chunking": {"strategy": "transcript"}})
    assert (result.policy.chunking.target_tokens, result.policy.chunking.overlap) == (450, 0.15)
    assert result.origins["chunking.overlap"] == "channel"


def test_the_policy_of_the_stages_is_frozen():
    policy = merged(upload={"mode": "tabular", "table": {"partition_by": ["year"]}}).policy
    assert isinstance(policy, Policy)
    assert (policy.family, policy.mode, policy.table.partition_by) == ("text", "tabular", ["year"])
    with pytest.raises(AttributeError):
        policy.mode = "text"


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"chunkng": {}}, "chunkng"),
        ({"chunking": {"target": 300}}, "chunking.target"),
        ({"chunking": {"target_tokens": 31}}, "chunking.target_tokens"),
        ({"chunking": {"target_tokens": "300"}}, "chunking.target_tokens"),
        ({"chunking": None}, "chunking"),
        ({"mode": "skip"}, "mode"),
        ({"embedding_model": "big"}, "embedding_model"),
        ({"transcribe": {"credential": "sk-abcdefghijklmnop1234"}}, "transcribe.credential"),
        ({"transcribe": {"endpoint": "ftp://x"}}, "transcribe.endpoint"),
        ({"vision": {"endpoint": "https://key:secret@host/"}}, "vision.endpoint"),
        ({"table": {"delimiter": ";;"}}, "table.delimiter"),
        ({"keep_markdown": "no"}, "keep_markdown"),
        ({"ocr": "\0"}, "ocr"),
        ([], ""),
        ("text", ""),
    ],
)
def test_what_is_not_known_is_refused_by_its_path(document, path):
    with pytest.raises(InvalidInput) as caught:
        load_policy(document, path="policy")
    assert caught.value.extra["errors"][0]["path"] == (f"policy.{path}" if path else "policy")
    assert caught.value.message.startswith("The ingest policy is not valid. policy")


def test_what_is_known_is_kept_as_it_was_said():
    said = {"chunking": {"target_tokens": 300}, "ocr": "off"}
    assert load_policy(said) == said


def test_layers_that_do_not_fit_together_are_refused():
    load_policy({"chunking": {"overlap": 450}})  # of a target that another layer says
    assert merged(channel={"chunking": {"target_tokens": 1000}}, upload={"chunking": {"overlap": 450}}).policy.chunking.overlap == 450
    with pytest.raises(InvalidInput, match="do not fit together") as caught:
        merged(channel={"chunking": {"target_tokens": 100}}, upload={"chunking": {"overlap": 450}})
    assert caught.value.extra["errors"][0]["path"] == "chunking.overlap"


@pytest.mark.parametrize("family", FAMILIES)
def test_defaults_of_families_are_policies(family):
    assert load_policy(FAMILIES[family].defaults) == dict(FAMILIES[family].defaults)


@pytest.mark.parametrize(
    ("media_type", "name", "head", "family"),
    [
        ("", "note.md", b"# Note", "markdown"),
        ("text/markdown; charset=utf-8", "note", b"# Note", "markdown"),
        ("application/octet-stream", "a.csv", b"a,b\n", "tabular"),
        ("text/csv", "", None, "tabular"),
        ("application/x-www-form-urlencoded", "Note", b"plain words", "text"),
        ("text/html", "x.pdf", PDF, "pdf"),
        ("image/png", "", PNG, "image"),
        ("text/plain", "photo.txt", PNG, "image"),
        ("audio/wav", "", None, "audio"),
        ("", "x.bin", WAV, "audio"),
        ("", "report.docx", b"PK\x03\x04..", "office"),
        ("", "table.xlsx", b"PK\x03\x04..", "tabular"),
        ("", "stuff.zip", b"PK\x03\x04..", "unknown"),
        ("", "note.md", b"PK\x03\x04..", "unknown"),
        ("", "old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1..", "office"),
        ("", "mail.msg", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1..", "mail"),
        ("", "data.bin", b"\0\1\2\3", "unknown"),
        ("text/plain", "wide.txt", b"\xff\xfeh\0i\0", "text"),
        ("text/x-anything", "noname", b"words", "text"),
        ("application/x-thing", "noname", b"words", "text"),
        ("application/x-thing", "noname", None, "unknown"),
    ],
)
def test_the_family_of_a_file(media_type, name, head, family):
    assert family_of(media_type=media_type, name=name, head=head) == family
