"""What the documents name exists: targets, links, commands, modules, variables, routes, codes, fields and files.

`docs/configuration.md` is rendered; that it is up to date is tested beside the schemas.
"""

import importlib.util
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.core.management import get_commands
from drf_spectacular.generators import SchemaGenerator

from config import addresses, env, problems, queues, roles
from config.errors import LecternError
from ingestion import claims, reconcile
from ingestion.services.documents import State
from kb.schemas.describe import describe
from retrieval.models import Reason

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMED = [pytest.param(page, id=page.name) for page in PAGES]
FOLDERS = ("config", "docs", "ingestion", "kb", "requirements", "retrieval", "tests", "workflows")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
# Read by the script that provisions a database, and not by the product.
OF_THE_SCRIPT = re.compile(r"\\getenv \w+ (\w+)")


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def code_of(page: Path) -> list[str]:
    """What stands in code spans and fences, where words are meant to the letter."""
    text = text_of(page)
    return [body for _, body in _FENCE.findall(text)] + _SPAN.findall(_FENCE.sub("", text))


def found(page: Path, pattern: str) -> set[str]:
    return {match for code in code_of(page) for match in re.findall(pattern, code, re.MULTILINE)}


def rows(page: Path, line: str) -> list[list[str]]:
    """Cells of the first table below a line of text, its head left out."""
    section = text_of(page).split(f"\n{line}\n", 1)[1]
    table = re.search(r"((?:^\|.*\n)+)", section, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in table[1].splitlines()[2:]]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", NAMED)
def test_links_lead_somewhere(page):
    for link in _LINK.findall(_FENCE.sub("", text_of(page))):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_file(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target), link


@pytest.mark.parametrize("page", NAMED)
def test_make_targets_exist(page):
    targets = {name for line in re.findall(r"^([a-z ]+):", text_of(ROOT / "Makefile"), re.MULTILINE) for name in line.split()}
    assert found(page, r"(?:^|\s)make ([a-z]+)") <= targets


@pytest.mark.parametrize("page", NAMED)
def test_commands_and_modules_exist(page):
    assert found(page, r"manage\.py ([a-z_]+)") <= set(get_commands())
    for module in found(page, r"python -m ([\w.]+)"):
        assert importlib.util.find_spec(module) is not None, module
    supervisor = text_of(ROOT / "config" / "embedded" / "supervisor.py")
    for action in found(page, r"config\.embedded\.supervisor ([a-z]+)"):
        assert f'add_parser("{action}"' in supervisor, action


@pytest.mark.parametrize("page", NAMED)
def test_roles_and_queues_exist(page):
    for line in found(page, r"config\.roles ([a-z]+(?: --queues [a-z,]+)?)"):
        assert roles.parse_role(line.split()).role
    listed = found(page, r"--queues ([a-z,]+)") | found(page, r"on queue ([a-z]+)")
    assert {queue for value in listed for queue in value.split(",")} <= set(queues.QUEUES)


@pytest.mark.parametrize("page", NAMED)
def test_benchmarks_and_soaks_exist(page):
    for name in found(page, r"make bench NAME=(\w+)"):
        assert (ROOT / "tests" / "benchmarks" / f"{name}.py").is_file(), name
    for name in found(page, r"make soak NAME=(\w+)"):
        assert (ROOT / "tests" / "benchmarks" / "soak" / f"{name}.py").is_file(), name


@pytest.mark.parametrize("page", NAMED)
def test_variables_are_settings(page):
    known = {name for field in env.Environment.model_fields for name in env.variable_names(field)}
    known |= set(OF_THE_SCRIPT.findall(text_of(ROOT / "config" / "embedded" / "provision.sql")))
    named = set(re.findall(r"\b(?:LECTERN_\w*[A-Z]|(?:DATABASE|DATABASE_OWNER|REDIS)_URL)\b", text_of(page)))
    assert {name for name in named if not name.startswith(env.SECRET_PREFIX)} <= known


@pytest.mark.parametrize("page", NAMED)
def test_json_parses(page):
    for language, body in _FENCE.findall(text_of(page)):
        if language == "json":
            json.loads(body)


@pytest.mark.parametrize("page", NAMED)
def test_files_of_the_project_exist(page):
    for name in found(page, rf"^((?:{'|'.join(FOLDERS)})/[\w./-]*\w/?)(?::\w+)?$"):
        assert (ROOT / name).exists() or (ROOT / f"{name}.py").is_file(), name


@pytest.mark.parametrize("page", NAMED)
def test_fields_are_in_the_reference(page):
    fields = found(page, r"^(?:sources\[\]\.)?((?:upload|settings|web|chunking|retrieval)\.[a-z_]+)$")
    reference = describe()
    assert {field for field in fields if f"{field}`" not in reference and not field.endswith(".py")} == set()


@pytest.mark.parametrize("page", NAMED)
def test_nothing_of_one_machine_stands_in_it(page):
    assert re.findall(r"/(?:home|Users|tmp|work)/\w+|127\.0\.0\.1:(?!8000)\d+", text_of(page)) == []


def test_every_route_is_listed_and_every_listed_route_exists():
    listed = re.findall(r"^\| (GET|POST|PUT|PATCH|DELETE) \| `([^`]+)` \| \S", text_of(ROOT / "docs" / "api.md"), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(operations())


def operations() -> Iterator[tuple[str, str]]:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    for path, methods in schema["paths"].items():
        for method in methods:
            yield method.upper(), path


def test_routes_that_take_an_idempotency_key_are_marked():
    schema = SchemaGenerator().get_schema(request=None, public=True)
    taking = {
        (method.upper(), path)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
        if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", []))
    }
    marked = re.findall(r"^\| (\w+) \| `([^`]+)` \| †", text_of(ROOT / "docs" / "api.md"), re.MULTILINE)
    assert set(marked) == taking


def test_every_error_is_listed_with_its_status():
    listed = {(int(status), code.strip("`")) for status, code, *_ in rows(ROOT / "docs" / "api.md", "## Errors")}
    ours = {(kind.status, kind.code) for kind in errors(LecternError)}
    assert {claims.ClaimLost, addresses.AddressRefused} <= set(errors(LecternError))
    assert listed == ours | set(problems._CODES.items())


def errors(kind: type[LecternError]) -> Iterator[type[LecternError]]:
    """Those that a caller of the API may see: not the tests' own, and not those of the supervisor."""
    if kind.__module__.partition(".")[0] in FOLDERS and not kind.__module__.startswith(("tests.", "config.embedded.")):
        yield kind
    for child in kind.__subclasses__():
        yield from errors(child)


def test_reasons_and_states_are_those_of_the_code():
    concepts = ROOT / "docs" / "concepts.md"
    explained = {reason for row in rows(concepts, "An empty answer has exactly one reason:") for reason in _SPAN.findall(row[0])}
    assert explained == set(Reason.values)
    assert {row[0].strip("`") for row in rows(concepts, "### States")} == set(State)


def test_what_a_reason_says_about_a_document_is_what_the_rules_say():
    table = rows(ROOT / "docs" / "concepts.md", "### What does a verdict say about a document?")
    told = {reason: says.partition(",")[0].partition(":")[0] for codes, _, says in table for reason in _SPAN.findall(codes)}
    missing = {reason for reason, says in told.items() if says == "missing"}
    nothing = {reason for reason, says in told.items() if says == "nothing"}
    assert missing == reconcile.SAYS_GONE | reconcile.NOT_LOOKED_AT
    assert all(reason in reconcile.SAYS_NOTHING or reason.endswith("_limit") for reason in nothing)
    assert {reason for reason, says in told.items() if says == "moved"} == {"redirected", "duplicate_of"}
