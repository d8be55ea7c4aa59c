"""Real Postgres and Valkey for every test that asks for a database; the servers come from `tests.services`."""

from collections.abc import Iterator

import pytest
from django.db import connections

@pytest.fixture(scope="session")
def database_name(worker_id: str) -> str:
    return f"lectern_tests_{worker_id}"


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker, database_name: str) -> Iterator[None]:
    """A fresh database per worker, made by the owner and used as the application's role, as in production."""
    from django.core.management import call_command

    with django_db_blocker.unblock():
        _recreate(database_name)
        for alias in ("default", "owner"):
            connections[alias].close()
            connections[alias].settings_dict["NAME"] = database_name
        call_command("migrate", database="owner", verbosity=0)
        with connections["owner"].cursor() as cursor:  # the flush between tests runs as the application's role
            cursor.execute("GRANT TRUNCATE ON ALL TABLES IN SCHEMA public TO lectern_app")
        make_model("hashing", provider="hashing", dimension=256, is_default=True)
        yield
        for alias in ("default", "owner"):
            connections[alias].close()


def _recreate(name: str) -> None:
    owner = connections["owner"]
    with owner.cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        cursor.execute(f'CREATE DATABASE "{name}"')
    owner.close()


@pytest.fixture(scope="session", autouse=True)
def _own_redis(worker_id: str) -> None:
    """A database of Redis for each process of a test run; the journeys' is number 1."""
    from django.conf import settings

    number = 2 + int(worker_id.removeprefix("gw")) if worker_id.startswith("gw") else 0
    settings.REDIS_URL = f"{settings.REDIS_URL.rpartition('/')[0]}/{number}"
    settings.CELERY = {**settings.CELERY, "broker_url": settings.REDIS_URL}


@pytest.fixture(autouse=True)
def _clean_redis(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keys of one test are nobody else's; only tests that use a database use Redis too."""
    yield
    if "db" in request.fixturenames or "transactional_db" in request.fixturenames:
        from config.redis import redis_client

        redis_client().flushdb()


@pytest.fixture
def organization(db):
    from kb import services

    return services.create_organization(name="Acme")


@pytest.fixture
def other_organization(db):
    from kb import services

    return services.create_organization(name="Rival")


def make_user(organization, name: str, role: str):
    from kb import services
    from kb.models import User

    user = User.objects.create(username=name)  # without a password: hashing one takes longer than a test; use force_login
    services.add_member(organization, user=user, role=role)
    return user


@pytest.fixture
def alice(organization):
    """An editor of Acme."""
    return make_user(organization, "alice", "editor")


@pytest.fixture
def bob(organization):
    """A viewer of Acme."""
    return make_user(organization, "bob", "viewer")


@pytest.fixture
def carol(organization):
    """An administrator of Acme."""
    return make_user(organization, "carol", "admin")


@pytest.fixture
def mallory(other_organization):
    """An administrator of the other organization, who must never see anything of Acme."""
    return make_user(other_organization, "mallory", "admin")


@pytest.fixture
def actor(alice):
    from kb.access import actor_for_user

    return actor_for_user(alice)


@pytest.fixture
def hashing_model(db):
    """The installation's default model in tests: deterministic, without weights. Made once; only a transactional test takes it away."""
    from kb.models import EmbeddingModel

    known = EmbeddingModel.objects.filter(name="hashing").first()
    return known or make_model("hashing", provider="hashing", dimension=256, is_default=True)


def make_model(name: str, *, provider: str, dimension: int, is_default: bool = False, **values):
    from kb.embedding import ensure_space
    from kb.models import EmbeddingModel
    from kb.stores.provision import provision_space

    model = EmbeddingModel.objects.create(
        name=name, provider=provider, model=values.pop("model", name), dimension=dimension, max_input_tokens=256, is_default=is_default, **values
    )
    provision_space(ensure_space(model))
    return model


@pytest.fixture
def knowledge_base(actor, hashing_model):
    from kb import services

    document = {"name": "Handbooks", "visibility": "organization", "sources": [{"name": "files", "type": "upload"}]}
    return services.create_knowledge_base(actor, document=document)


@pytest.fixture
def source(knowledge_base):
    from kb.models import Source

    return Source.objects.get(knowledge_base=knowledge_base, name="files")
