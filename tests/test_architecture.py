"""Conventions that matter are tests: layers, imports, file length, complete migrations, importable registries."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from config.registry import Registry

ROOT = Path(__file__).resolve().parent.parent
APPS = ("config", "kb", "ingestion", "retrieval", "workflows")
MAY_IMPORT = {
    "config": {"config"},
    "kb": {"config", "kb"},
    "ingestion": {"config", "kb", "ingestion"},
    "retrieval": {"config", "kb", "retrieval"},
    "workflows": set(APPS),
}
# Pure packages: no models, no settings, no Celery.
PURE = (
    "ingestion/crawl",
    "ingestion/extract",
    "ingestion/recognize",
    "ingestion/render",
    "ingestion/chunk",
    "ingestion/datasets",
    "ingestion/reconcile.py",
    "kb/bundles",
    "kb/words",
    "kb/schemas",
    "retrieval/evaluation/metrics.py",
    "retrieval/evaluation/plot.py",
    "retrieval/fusion.py",
    "retrieval/recall/figures.py",
    "retrieval/context.py",
    "retrieval/likeness.py",
)
MAX_LINES = 300


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")) if "migrations" not in path.parts]


def imports(path: Path) -> Iterator[tuple[str, int, int]]:
    """(module, level, line) of every import, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, 0, node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.level, node.lineno


@pytest.mark.parametrize("app", APPS)
def test_layers_import_downwards_only(app):
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in sources(app)
        for module, level, line in imports(path)
        if not level and module.partition(".")[0] in APPS and module.partition(".")[0] not in MAY_IMPORT[app]
    ]
    assert wrong == []


def test_no_relative_imports():
    assert [f"{path}:{line}" for path in sources(*APPS) for _, level, line in imports(path) if level] == []


def test_pure_packages_know_no_framework():
    files = [path for name in PURE for path in ([ROOT / name] if name.endswith(".py") else sources(name))]
    forbidden = ("django", "celery", "redis", "psycopg", "config.settings", "kb.models", "ingestion.models")
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in files
        for module, _, line in imports(path)
        if any(module == name or module.startswith(f"{name}.") for name in forbidden)
    ]
    assert wrong == []


def test_views_ask_access_for_rows():
    """`.objects` in an api package would be a door beside `kb.access`. Authentication looks up keys before there is an actor."""
    files = [path for app in APPS for path in sources(f"{app}/api") if path.name != "authentication.py"]
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "objects"
    ]
    assert wrong == []


def test_no_file_holds_two_ideas():
    long = {
        str(path.relative_to(ROOT)): lines for path in sources(*APPS, "tests") if (lines := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert long == {}


def test_module_names_say_what_they_hold():
    banned = ("utils", "helpers", "common", "manager", "handler")
    assert [str(path.relative_to(ROOT)) for path in sources(*APPS) if path.stem in banned or path.stem.startswith("base_")] == []


@pytest.mark.parametrize(
    "kind",
    [
        "EMBEDDING_PROVIDERS",
        "RERANKERS",
        "SOURCE_LISTERS",
        "CRAWLS",
        "STAGES",
        "HOUSEKEEPING",
        "VECTOR_STORES",
        "NOTICES",
        "RETRIEVAL_JOBS",
    ],
)
def test_every_registered_name_can_be_imported(kind):
    registry = Registry(kind, getattr(settings, kind))
    assert [registry.load(name) for name in registry.names()]


@pytest.mark.django_db(databases=["default", "owner"])
def test_migrations_are_complete(capsys):
    call_command("makemigrations", check=True, dry_run=True, verbosity=1)
