"""Clients of the API, and a run worked in this process."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from config.version import VERSION
from tests.ingestion.api.channels import Sender

STAGES = ("crawl", "extract", "embed", "publish", "finish")


@pytest.fixture(autouse=True)
def _quick_passwords(settings) -> None:
    """Each test makes its users; a slow hash of their passwords would be most of its time."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def api_client(organization, user, role: str) -> APIClient:
    from kb import services

    _, value = services.create_api_key(organization, name=f"key of {user}", role=role, created_by=user)
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {value}", HTTP_USER_AGENT=f"lectern-tests/{VERSION}")
    client.raise_request_exception = False
    return client


@pytest.fixture
def editor(organization, alice) -> APIClient:
    return api_client(organization, alice, "editor")


@pytest.fixture
def viewer(organization, bob) -> APIClient:
    return api_client(organization, bob, "viewer")


@pytest.fixture
def stranger(other_organization, mallory) -> APIClient:
    return api_client(other_organization, mallory, "admin")


@pytest.fixture
def anonymous() -> APIClient:
    return APIClient()


@pytest.fixture
def kb_url(knowledge_base) -> str:
    return f"/api/v1/knowledge-bases/{knowledge_base.id}"


@pytest.fixture
def source_url(kb_url, source) -> str:
    return f"{kb_url}/sources/{source.id}"


@pytest.fixture
def work() -> Callable[..., object]:
    """`work(run_id)` works a run to its end in this process; `work(run_id, until="embed")` stops before that stage."""

    def advance(run_id, until: str | None = None):
        from ingestion.models import IngestionRun
        from ingestion.stages import slices

        stages = STAGES if until is None else STAGES[: STAGES.index(until)]
        for _ in range(3):
            for stage in stages:
                slices.work(stage, IngestionRun.objects.get(id=run_id).id, f"{run_id}:{uuid4().hex}")
            if until or not IngestionRun.objects.get(id=run_id).is_open:
                break
        return IngestionRun.objects.get(id=run_id)

    return advance


@pytest.fixture
def upload(editor, source_url):
    """`upload(name=content, …)` puts files and gives the answer."""
    from django.core.files.uploadedfile import SimpleUploadedFile

    def send(*files: tuple[str, bytes], client=None):
        parts = [SimpleUploadedFile(name, content, content_type="application/octet-stream") for name, content in files]
        return (client or editor).post(f"{source_url}/files", {"files": parts}, format="multipart")

    return send


@pytest.fixture
def run_now(editor, source_url, work):
    """Run the source through the API to its end."""

    def run():
        answer = editor.post(f"{source_url}/run")
        assert answer.status_code == 202, answer.content
        return work(answer.json()["run_id"])

    return run


@pytest.fixture
def async_get():
    """A request through the ASGI handler, read to its end while `meanwhile` runs: (answer, body)."""
    import asyncio

    from django.test import AsyncClient

    from config.tenancy import nobody

    def get(url: str, client: APIClient | None, *, accept: str, last_event_id: str = "", meanwhile=None):
        headers = {"accept": accept}
        if client is not None:
            headers["authorization"] = client.defaults["HTTP_AUTHORIZATION"]
        if last_event_id:
            headers["last-event-id"] = last_event_id

        async def read():
            answer = await AsyncClient().get(url, headers=headers)
            beside = asyncio.create_task(meanwhile()) if meanwhile else None
            with nobody():  # the request is over
                body = b"".join([part async for part in answer.streaming_content]) if answer.streaming else answer.content
            if beside:
                await beside
            return answer, body

        return asyncio.run(asyncio.wait_for(read(), 30))

    return get


@pytest.fixture
def channel(editor, knowledge_base) -> dict:
    """The default channel of Acme, into the knowledge base that everybody may read."""
    body = {"name": "Uploads", "knowledge_base_id": str(knowledge_base.id), "is_default": True}
    answer = editor.post("/api/v1/channels", body, format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()


@pytest.fixture
def sender(editor, channel, work) -> Sender:
    return Sender(editor, channel["id"], work)


@pytest.fixture
def second_editor(organization) -> APIClient:
    """Another editor of Acme, with what is private of their own."""
    from tests.conftest import make_user

    return api_client(organization, make_user(organization, "erin", "editor"), "editor")
