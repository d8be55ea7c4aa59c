"""Every route under /api/v1 as somebody of another organization: what is Acme's answers, byte for byte, as what is not there.

Routes are collected from the resolver, so that a new one is covered at once; an unknown parameter fails the walk. So are the tables
that row-level security has to protect.
"""

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.apps import apps
from django.db import connection
from django.urls import get_resolver
from django.utils import timezone
from rest_framework.test import APIClient

from ingestion.models import IngestionRun
from ingestion.services.uploads import Announced, announce_to_source
from kb import services
from kb.access import actor_for_user
from kb.bindings import bind_service
from kb.channels import ChannelInput, create_channel
from kb.embedding_models import register_model
from kb.models import Blob, Dataset, DatasetPart, Document, File, Organization, Source, derived
from kb.reranking import register_reranker
from retrieval.models import Evaluation, Judgement, RecallCheck, RetrievalTrace

pytestmark = pytest.mark.django_db

OWN = ("kb", "ingestion", "retrieval", "workflows")
METHODS = ("get", "post", "put", "patch", "delete")
PUBLIC = {"api/v1/schema", "api/v1/docs"}  # the description of the API holds nothing of anybody
SIGNED = {"api/v1/files/uploads/<str:upload_id>/content"}  # the address itself says who asked; a wrong one is 403 for everybody
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
# Where the body is read before the last part of the path names anything.
BODIES = {
    "api/v1/members/<str:user_id>": {"role": "viewer"},
    "api/v1/knowledge-bases/<str:kb_id>/grants/<str:user_id>": {"level": "viewer"},
}
ABSENT_USER, ABSENT_NUMBER = "987654", "98765"


def walk(patterns, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(route, method) of every view below /api/v1."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from walk(pattern.url_patterns, route)
        elif route.startswith("api/v1/") and route not in PUBLIC:
            view = getattr(pattern.callback, "cls", None) or getattr(pattern.callback, "view_class", None)
            yield from ((route, method) for method in METHODS if hasattr(view, method))


def routes() -> list[tuple[str, str]]:
    return list(walk(get_resolver().url_patterns))


def parameters(route: str) -> list[str]:
    return PARAMETER.findall(route)


def fill(route: str, values: dict[str, str]) -> str:
    return "/" + PARAMETER.sub(lambda match: str(values[match[1]]), route)


def send(client: APIClient, method: str, url: str, route: str):
    if method in ("get", "delete"):
        return getattr(client, method)(url)
    return getattr(client, method)(url, BODIES.get(route, {}), format="json")


def rows_of(organization, actor, document_name: str) -> dict[str, object]:
    """An id for every parameter that a route has."""
    made = services.create_knowledge_base(actor, document={"name": document_name, "sources": [{"name": "files", "type": "upload"}]})
    source = Source.objects.get(knowledge_base=made)
    blob = Blob.objects.create(organization=organization, sha256=uuid4().bytes * 2, size=1, storage_key="k")
    file = File.objects.create(organization=organization, blob=blob, name="a.txt", size=1, sha256=bytes(blob.sha256))
    of = {"organization": organization, "knowledge_base": made, "source": source}
    document = Document.objects.create(key="a.txt", key_hash=uuid4().bytes, title="Plan", file=file, **of)
    ended = {"claim_token": uuid4(), "finished_at": timezone.now(), "status": "succeeded", "version": made.current}
    run = IngestionRun.objects.create(**of, **ended)
    push = IngestionRun.objects.create(kind="push", crawl_state={"document": str(document.id)}, **of, **ended)
    dataset = Dataset.objects.create(key="a", key_hash=uuid4().bytes, name="acme_sales" if "Acme" in document_name else "sales", **of)
    span = {"columns": [], "rows": 1, "size": 1, "start": 0, "end": 1}
    DatasetPart.objects.create(organization=organization, knowledge_base=made, dataset=dataset, document=document, blob=blob, **span)
    key, _ = services.create_api_key(organization, name="key")
    own_model = {"name": "own", "provider": "hashing", "model": "own", "dimension": 256, "max_input_tokens": 256}
    model = register_model(actor, document=own_model)
    channel = create_channel(actor, wanted=ChannelInput(f"Channel of {document_name}", made.id))
    within = {"organization": organization, "knowledge_base": made}
    expected = [{"document": str(document.id), "grade": 1, "quote": "secret plan"}]
    judgement = Judgement.objects.create(question=f"{document_name}?", question_hash=uuid4().bytes, expected=expected, **within)
    bound = {"purpose": "vision", "endpoint": "https://vision.example/v1", "credential": "TOKEN"}
    token = services.set_secret(organization=organization, name="TOKEN", value="a secret value")
    reranker = {"name": document_name, "provider": "cohere", "model": "rerank-v3.5", "credential": "TOKEN"}
    return {
        "reranker_id": register_reranker(actor, document=reranker).id,
        "channel_id": channel.id,
        "binding_id": bind_service(actor, document=bound).id,
        "kb_id": made.id,
        "number": 1,
        "user_id": actor.user.pk,
        "source_id": source.id,
        "file_id": file.id,
        "document_id": document.id,
        "dataset_id": dataset.id,
        "run_id": run.id,
        "ingestion_id": push.id,
        "trace_id": RetrievalTrace.objects.create(organization=organization, query="secret plan", mode="keyword").id,
        "judgement_id": judgement.id,
        "evaluation_id": Evaluation.objects.create(version=1, settings={"ways": ["own"], "k": 10}, **within).id,
        "check_id": RecallCheck.objects.create(version=1, **within).id,
        "key_id": key.id,
        "secret_id": token.id,
        "model_id": model.id,
        "upload_id": announce_to_source(actor, source, Announced("plan.txt", 1), is_resumable=True).id,
    }


@pytest.fixture
def acme(organization, carol, hashing_model) -> dict[str, object]:
    return rows_of(organization, actor_for_user(carol), "Acme's plans")


@pytest.fixture
def own(other_organization, mallory, hashing_model) -> dict[str, object]:
    """Mallory's own rows, to mix with Acme's."""
    return rows_of(other_organization, actor_for_user(mallory), "Mallory's")


@pytest.fixture
def absent(acme) -> dict[str, object]:
    return {name: uuid4() for name in acme} | {"user_id": ABSENT_USER, "number": ABSENT_NUMBER}


@pytest.fixture
def stranger(mallory) -> APIClient:
    client = APIClient()
    client.force_login(mallory)
    return client


def test_every_parameter_is_known(acme):
    unknown = {name for route, _ in routes() for name in parameters(route)} - set(acme)
    assert not unknown, f"Say in tests/test_tenancy.py what id of Acme's stands for: {', '.join(sorted(unknown))}"
    assert len(routes()) > 40


def test_nobody_is_let_in_without_a_key(acme, absent):
    """401 before anything is looked up: also for what is there."""
    client = APIClient()
    for route, method in routes():
        answers = [send(client, method, fill(route, values), route) for values in (acme, absent)]
        expected = 403 if route in SIGNED else 401
        assert [answer.status_code for answer in answers] == [expected, expected], (method, route)
        assert answers[0].content == answers[1].content, (method, route)
        client.credentials(HTTP_AUTHORIZATION="Bearer lk_wrong")
        assert send(client, method, fill(route, acme), route).status_code == expected, (method, route)
        client.credentials()


def test_foreign_and_absent_are_the_same_bytes(stranger, acme, absent):
    for route, method in routes():
        if not parameters(route):
            continue
        foreign, missing = (send(stranger, method, fill(route, values), route) for values in (acme, absent))
        assert foreign.status_code == missing.status_code == (403 if route in SIGNED else 404), (method, route, foreign.content)
        assert foreign.content == missing.content, (method, route)
        assert differing(foreign, missing) == set(), (method, route)


def test_what_is_foreign_inside_one_s_own_is_absent_too(stranger, acme, own, absent):
    """Mallory's knowledge base with Acme's source, Mallory's source with Acme's file, and so on."""
    for route, method in routes():
        names = parameters(route)
        for count in range(1, len(names)):
            mine = {name: own[name] for name in names[:count]}
            foreign, missing = (send(stranger, method, fill(route, {**values, **mine}), route) for values in (acme, absent))
            if names[count:] == ["number"]:
                continue  # a version's number is nobody's
            assert foreign.status_code == missing.status_code, (method, route, count)
            assert foreign.status_code in (400, 404), (method, route, count, foreign.content)
            assert foreign.content == missing.content, (method, route, count)


def test_lists_hold_nothing_of_somebody_else(stranger, acme, own):
    for route, method in routes():
        if method != "get":
            continue
        content = send(stranger, "get", fill(route, own), route)
        if hasattr(content, "streaming_content"):
            continue
        text = content.content.decode(errors="replace")
        assert not [name for name, value in acme.items() if name not in ("number", "user_id") and str(value) in text], route
        assert "Acme" not in text, route
        assert "secret value" not in text, route


def differing(one, other) -> set[str]:
    return {name for name in {*one.headers, *other.headers} if one.headers.get(name) != other.headers.get(name)}


def _rows(statement: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def tenant_tables() -> Iterator[tuple[str, str, bool]]:
    """(table, column, whether rows may be the installation's) of every model that belongs to an organization, derived ones left out."""
    for model in (model for name in OWN for model in apps.get_app_config(name).get_models()):
        if model.__module__ == derived.__name__:
            continue
        for field in model._meta.concrete_fields:
            if model is Organization and field.primary_key:
                yield model._meta.db_table, "id", False
            elif field.remote_field and field.related_model is Organization:
                yield model._meta.db_table, field.column, field.null


def test_every_table_with_an_organization_is_protected():
    """A new one needs `config.row_security.protect` in its migration."""
    forced = dict(_rows("SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class WHERE relkind IN ('r', 'p')"))
    policies: dict[str, dict[str, tuple]] = {}
    for table, name, command, using, check in _rows("SELECT tablename, policyname, cmd, qual, with_check FROM pg_policies"):
        policies.setdefault(table, {})[name] = (command, using, check)
    found = sorted(tenant_tables())
    assert len(found) >= 25
    for table, column, shared in found:
        assert forced[table], f"{table} has no forced row-level security: add protect({table!r}) to its migration"
        own = policies[table].pop("tenant")
        assert own[0] == "ALL"
        assert own[1] == own[2], "what is written is held to what may be seen"
        assert column in own[1]
        assert ("COALESCE(" + column) in own[1] if shared else True, f"{table}.{column} may be null: protect it as shared"
        assert list(policies.pop(table)) == (["installation"] if shared else [])
    assert not policies
