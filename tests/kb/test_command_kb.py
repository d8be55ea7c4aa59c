"""`manage.py kb`: what it prints, what it exits with, and that a folder can be exported and applied."""

import io
import json
import zipfile

import pytest
from django.core.management import CommandError, call_command

from kb import services, versioning
from kb.access import system_actor
from kb.models import Document, KnowledgeBase, Source

pytestmark = pytest.mark.django_db
TEXT = "name: Docs\nsources:\n- {name: files, type: upload}\n"


def run(*arguments: object) -> str:
    out = io.StringIO()
    call_command("kb", *map(str, arguments), stdout=out, stderr=io.StringIO())
    return out.getvalue()


@pytest.fixture
def file(tmp_path, organization, hashing_model):
    path = tmp_path / "docs.yaml"
    path.write_text(TEXT)
    return path


def test_apply_says_what_it_does_and_then_that_nothing_changed(file, alice):
    assert run("apply", file, "--dry-run") == "Docs: would be created, version 1\n"
    assert not KnowledgeBase.objects.exists()
    assert run("apply", file, "--user", "alice", "--comment", "by hand") == "Docs: created, version 1\n"
    version = versioning.read(KnowledgeBase.objects.get())
    assert (version.author_name, version.comment) == ("alice", "by hand")
    assert run("apply", file, "--exit-code") == "Docs: unchanged, version 1\n"
    file.write_text(TEXT + "description: new\n")
    with pytest.raises(SystemExit) as exit_:
        run("apply", file, "--dry-run", "--exit-code")
    assert exit_.value.code == 2
    assert run("apply", file, "--dry-run") == 'Docs: would be published, version 2\n  ~ description: "" → "new"\n'
    assert json.loads(run("apply", file, "--json"))["knowledge_bases"][0]["changes"] == [
        {"path": "description", "kind": "changed", "old": "", "new": "new"}
    ]


def test_removals_are_counted_and_have_to_be_allowed(file, organization):
    run("apply", file)
    source = Source.objects.get()
    of = {"organization": organization, "knowledge_base": source.knowledge_base, "source": source}
    Document.objects.create(key="a", key_hash=b"a" * 16, **of)
    file.write_text("name: Docs\n")
    assert "  ! 1 documents go with the source files\n" in run("apply", file, "--dry-run")
    with pytest.raises(CommandError, match="'files' with 1 documents"):
        run("apply", file)
    assert "published, version 2" in run("apply", file, "--allow-removals")


def test_a_folder_goes_out_and_comes_in(tmp_path, file):
    run("apply", file)
    services.create_knowledge_base(system_actor(KnowledgeBase.objects.get().organization), document={"name": "Policies"})
    folder = tmp_path / "out"
    run("export", "--output", f"{folder}/")
    assert sorted(path.name for path in folder.iterdir()) == ["docs.yaml", "policies.yaml"]
    (folder / ".git").mkdir()
    (folder / ".git" / "x.yaml").write_text("name: x")
    assert run("apply", folder) == "Docs: unchanged, version 1\nPolicies: unchanged, version 1\n"
    run("export", "docs", "--output", tmp_path / "one.zip")
    assert len(zipfile.ZipFile(tmp_path / "one.zip").namelist()) == 2
    assert run("apply", tmp_path / "one.zip") == "Docs: unchanged, version 1\n"
    both = run("export")
    assert both.count("\n---\n") == 1
    assert run("export", "docs", "--number", 1) in both
    assert run("export", KnowledgeBase.objects.get(name="Docs").id) == run("export", "Docs")


def test_import_makes_another_one(file, tmp_path):
    assert run("import", file) == "Docs: created, version 1\n"
    with pytest.raises(CommandError, match="taken already: 'Docs'"):
        run("import", file)
    assert run("import", file, "--rename") == "Docs (2): created, version 1\n"
    eddi = tmp_path / "a.rag.json"
    eddi.write_text(json.dumps({"name": "Old", "chunkSize": 800, "embeddingProvider": "openai"}))
    assert run("import", eddi, "--model", "openai/text-embedding-3-small=hashing", "--dry-run").splitlines() == [
        "Old: would be created, version 1",
        "  * embeddingProvider ('openai' → 'openai/text-embedding-3-small'): became the name of an embedding model, "
        "which has to be registered here.",
        "  * chunkSize (800 → 200): is in tokens here, about 4 characters each.",
        "  * embedding_model ('openai/text-embedding-3-small' → 'hashing'): is called otherwise here.",
    ]


def test_several_faults_are_all_told(file):
    file.write_text("name: a\ncolour: red\nlanguage: klingon\n")
    with pytest.raises(CommandError) as caught:
        run("import", file)
    assert "\n  colour: " in str(caught.value)
    assert "\n  language: " in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["apply", "absent.yaml"], "absent.yaml cannot be read"),
        (["export", "nobody"], "no knowledge base 'nobody'"),
        (["export", "--number", "1"], "for one knowledge base"),
        (["export", "--organization", "Nobody"], "no such organization"),
        (["export", "--user", "nobody"], "no user named"),
        (["import", "x", "--model", "a"], "OLD=NEW"),
    ],
)
def test_what_it_cannot_do_is_a_sentence(organization, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_text("name: a")
    with pytest.raises(CommandError, match=message):
        run(*arguments)


def test_of_several_organizations_one_is_named(organization, other_organization, file):
    with pytest.raises(CommandError, match=r"Say which --organization\. Known: Acme, Rival"):
        run("apply", file)
    run("apply", file, "--organization", "Rival")
    assert KnowledgeBase.objects.get().organization == other_organization
