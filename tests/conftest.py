"""Real Postgres and Valkey for every test that asks for a database; the servers come from `tests.services`."""

from collections.abc import Iterator

import pytest
from django.db import connections

from tests.databases import create_database

SPACE = 1_000_000
blocker_key = pytest.StashKey()


@pytest.fixture(scope="session")
def database_name(worker_id: str) -> str:
    return f"lectern_tests_{worker_id}"


@pytest.fixture(scope="session")
def django_db_setup(request: pytest.FixtureRequest, django_db_blocker, database_name: str) -> Iterator[None]:
    """A fresh database per worker, made by the owner and used as the application's role, as in production."""
    from config.tenancy import everyone

    request.config.stash[blocker_key] = django_db_blocker
    with django_db_blocker.unblock():
        create_database(database_name)
        for alias in ("default", "owner"):
            connections[alias].close()
            connections[alias].settings_dict["NAME"] = database_name
        with connections["owner"].cursor() as cursor:  # the flush between tests runs as the application's role
            cursor.execute("GRANT TRUNCATE ON ALL TABLES IN SCHEMA public TO lectern_app")
        with everyone():
            install_model()
        yield
        for alias in ("default", "owner"):
            connections[alias].close()


@pytest.fixture(scope="session", autouse=True)
def _own_redis(worker_id: str) -> None:
    """A database of Redis for each process of a test run; the journeys' is number 1."""
    from django.conf import settings

    number = 2 + int(worker_id.removeprefix("gw")) if worker_id.startswith("gw") else 0
    settings.REDIS_URL = f"{settings.REDIS_URL.rpartition('/')[0]}/{number}"
    settings.CELERY = {**settings.CELERY, "broker_url": settings.REDIS_URL}


@pytest.fixture(autouse=True)
def _everyone() -> Iterator[None]:
    """A test looks at rows of everyone. Requests and tasks start with nobody all the same, and threads do too."""
    from config.tenancy import everyone

    with everyone():
        yield


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
    """The installation's default model in tests: deterministic, without weights. It is there before each test."""
    from kb.models import EmbeddingModel

    return EmbeddingModel.objects.get(name="hashing")


def install_model() -> None:
    """The model and its space, always under one number, so that the partition is made once."""
    from django.utils import timezone

    from kb.models import EmbeddingModel, EmbeddingSpace
    from kb.stores.provision import provision_space

    model, made = EmbeddingModel.objects.get_or_create(
        name="hashing",
        organization=None,
        defaults={"provider": "hashing", "model": "hashing", "dimension": 256, "max_input_tokens": 256, "is_default": True},
    )
    if made:
        space = EmbeddingSpace.objects.create(
            id=SPACE, embedding_model=model, dimension=256, fingerprint="hashing", provisioned_at=timezone.now()
        )
        provision_space(space)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tables are the owner's: the flush after a transactional test that leaves that alias out would empty nothing."""
    for item in items:
        marker = item.get_closest_marker("django_db")
        if marker and marker.kwargs.get("transaction") and "owner" not in marker.kwargs.get("databases", ()):
            raise pytest.UsageError(f'{item.nodeid}: write django_db(transaction=True, databases=["default", "owner"])')


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """A transactional test ends with empty tables; the next test finds the model again."""
    result = yield
    marker = item.get_closest_marker("django_db")
    if (marker and marker.kwargs.get("transaction")) or "transactional_db" in getattr(item, "fixturenames", ()):
        from config.tenancy import everyone

        blocker = item.session.config.stash[blocker_key]
        with blocker.unblock(), everyone():
            install_model()
            connections["default"].close()
            connections["owner"].close()
    return result


@pytest.fixture
def knowledge_base(actor, hashing_model):
    from kb import services

    document = {"name": "Handbooks", "visibility": "organization", "sources": [{"name": "files", "type": "upload"}]}
    return services.create_knowledge_base(actor, document=document)


@pytest.fixture
def source(knowledge_base):
    from kb.models import Source

    return Source.objects.get(knowledge_base=knowledge_base, name="files")


@pytest.fixture
def sources(organization, other_organization):
    """One in each of two organizations, called like it."""
    from kb import access, services
    from kb.models import Source

    made = {}
    for owner in (organization, other_organization):
        actor = access.system_actor(owner)
        base = services.create_knowledge_base(actor, document={"name": "Notes", "sources": [{"name": owner.name, "type": "upload"}]})
        made[owner.name] = Source.objects.get(knowledge_base=base)
    return made


# Far from what a sequence hands out: the partitions stay while the rows of each test are rolled back.
SECOND_SPACE, TWIN_SPACE = 900_000_002, 900_000_003


@pytest.fixture(scope="session")
def second_partition(django_db_setup, django_db_blocker) -> int:
    """Of another dimension than that of the model in use."""
    return _provision(django_db_blocker, SECOND_SPACE, dimension=384)


@pytest.fixture(scope="session")
def twin_partition(django_db_setup, django_db_blocker) -> int:
    """Of the same dimension."""
    return _provision(django_db_blocker, TWIN_SPACE, dimension=256)


def _provision(django_db_blocker, number: int, *, dimension: int) -> int:
    """By the owner outside of any test's transaction, else the application's connection could not see it."""
    from django.utils import timezone

    from kb.models import EmbeddingSpace
    from kb.stores.provision import provision_space

    with django_db_blocker.unblock():
        provision_space(EmbeddingSpace(pk=number, dimension=dimension, provisioned_at=timezone.now()))
        connections["owner"].close()
    return number


@pytest.fixture
def make_space(db):
    """A registered model with its space; nothing is provisioned."""

    def make(name: str, *, dimension: int, pk: int | None = None, **values):
        from django.utils import timezone

        from kb.models import EmbeddingModel, EmbeddingSpace

        model = EmbeddingModel.objects.create(name=name, model=name, dimension=dimension, max_input_tokens=256, **values)
        return EmbeddingSpace.objects.create(
            pk=pk, embedding_model=model, dimension=dimension, fingerprint=name, provisioned_at=timezone.now()
        )

    return make
