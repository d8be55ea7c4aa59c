"""Clients: a signed-in person, or whoever holds a key."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient


def signed_in(user) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


def with_key(value: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {value}")
    return client


@pytest.fixture
def client(alice) -> APIClient:
    """Alice, an editor."""
    return signed_in(alice)


@pytest.fixture
def client_of() -> Callable[..., APIClient]:
    return signed_in


@pytest.fixture
def key_client(organization, carol) -> Callable[..., APIClient]:
    """A client with a key of Carol's: `key_client(role=…, knowledge_base_ids=[…])`."""
    from kb import services

    def make(**values) -> APIClient:
        return with_key(services.create_api_key(organization, name="key", created_by=carol, **values)[1])

    return make


@pytest.fixture
def url(knowledge_base) -> str:
    return f"/api/v1/knowledge-bases/{knowledge_base.id}"


@pytest.fixture
def api_client() -> Callable[[str], APIClient]:
    """A client with the value of a key."""
    return with_key
