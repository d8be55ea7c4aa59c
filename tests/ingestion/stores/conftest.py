"""Knowledge bases whose vectors lie in a store over a network, and the server that holds them."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from config.addresses import parse_networks
from kb import services
from kb.models import KnowledgeBase
from tests.ingestion.stores.outside import KEY


@pytest.fixture
def qdrant() -> Iterator[Any]:
    if find_spec("qdrant_client") is None:
        pytest.skip("needs requirements/stores.txt")
    from tests.servers import qdrant_server

    with qdrant_server.serving(KEY) as server:
        yield server


@pytest.fixture(autouse=True)
def _loopback_is_allowed(settings, monkeypatch):
    settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": parse_networks("127.0.0.1/32:*")})
    monkeypatch.setattr("config.http.environment", lambda: settings.ENV)


@pytest.fixture
def store_at(qdrant) -> dict[str, Any]:
    """As a document names it."""
    parameters = {"host": "127.0.0.1", "port": qdrant.server_port, "api_key": "${secret:QDRANT}"}
    return {"type": "qdrant", "parameters": parameters}


@pytest.fixture
def make_outside(store_at, actor) -> Callable[..., KnowledgeBase]:
    def make(name: str, by: Any = None, **values: Any) -> KnowledgeBase:
        owner = by or actor
        services.set_secret(organization=owner.organization, name="QDRANT", value=KEY)
        document = {
            "name": name,
            "visibility": "organization",
            "store": store_at,
            "retrieval": {"min_score": 0.0, "neighbours": 0},
            "sources": [{"name": "files", "type": "upload"}],
        }
        return services.create_knowledge_base(owner, document=document | values)

    return make


@pytest.fixture
def outside(make_outside, hashing_model) -> KnowledgeBase:
    return make_outside("Outside")
