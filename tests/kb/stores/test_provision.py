import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psycopg
import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from config.errors import Unavailable
from config.tenancy import carried
from kb.models import EmbeddingSpace
from kb.stores import provision, vectors
from kb.stores.provision import build_indexes, provision_space
from kb.stores.tables import space_name
from kb.stores.vectors import add_vectors, remove_vectors, search_vectors
from tests.kb.stores.conftest import leaves, value

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])


def test_provisioning_can_be_repeated(fresh):
    assert fresh.provisioned_at is None
    provision_space(fresh)
    fresh.refresh_from_db()
    first = fresh.provisioned_at
    assert first is not None
    provision_space(fresh)
    fresh.refresh_from_db()
    assert fresh.provisioned_at == first
    assert leaves(fresh) == 4


def test_two_at_once_make_one_partition(fresh):
    def provision_once(_):
        try:
            provision_space(EmbeddingSpace(pk=fresh.pk, dimension=256, provisioned_at=timezone.now()))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(carried(provision_once), range(4)))
    assert leaves(fresh) == 4


def test_an_open_reader_and_writer_do_not_block_provisioning(fresh, shelf):
    chunks = shelf.add_document(1)
    connection.set_autocommit(False)
    try:
        shelf.add_vectors(chunks, np.ones((1, 256)))
        value("SELECT count(*) FROM embedding_256")
        fresh.provisioned_at = timezone.now()
        provision_space(fresh)
    finally:
        connection.rollback()
        connection.set_autocommit(True)
    assert leaves(fresh) == 4


def test_a_held_lock_is_waited_for_and_then_reported(fresh, monkeypatch):
    monkeypatch.setattr(provision, "LOCK_TIMEOUT_MS", 50)
    monkeypatch.setattr(provision, "ATTEMPTS", 3)
    with psycopg.connect(**owner_parameters()) as other:
        other.execute("LOCK TABLE embedding_256 IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Unavailable, match="long transaction"):
            provision_space(fresh)
        assert leaves(fresh) == 0
        # The lock goes while a second provisioning is at it.
        monkeypatch.setattr(provision, "ATTEMPTS", 8)
        timer = threading.Timer(0.3, other.rollback)
        timer.start()
        provision_space(fresh)
        timer.join()
    assert leaves(fresh) == 4


@pytest.fixture
def crowded(fresh, make_shelf, monkeypatch):
    """Two knowledge bases of one leaf, 600 and 30 chunks, and a threshold that 600 pass."""
    for module in (vectors, provision):
        monkeypatch.setattr(module, "EXACT_ROWS", 100)
    monkeypatch.setattr(vectors, "EXACT_ROWS_OF_DOCUMENTS", 100)
    provision_space(fresh)
    generator = np.random.default_rng(3)
    large = make_shelf("Large")
    leaf = leaf_of(fresh, large.id)
    small = next(
        made for made in (make_shelf(f"Small {i}", large.knowledge_base.organization) for i in range(60)) if leaf_of(fresh, made.id) == leaf
    )
    for each, count in ((large, 600), (small, 30)):
        each.space = fresh
        chunks = each.add_document(count)
        each.vectors = generator.normal(size=(count, 256)).astype(np.float32)
        each.add_vectors(chunks, each.vectors)
        each.add_words(chunks, [{1: 1}] * count)
        each.chunks = chunks
    return fresh, large, small


def leaf_of(space, knowledge_base):
    return next(
        r
        for r in range(4)
        if value("SELECT satisfies_hash_partition(to_regclass(%s), 4, %s, %s)", space_name(256, space.pk), r, knowledge_base)
    )


def search(shelf, query, limit=10, **more):
    return search_vectors(organization=shelf.organization, space=shelf.space, knowledge_bases=[shelf.id], query=query, limit=limit, **more)


def test_an_index_is_built_on_large_leaves_and_used(crowded):
    space, large, small = crowded
    assert search(large, large.vectors[5]).plan == "exact"
    built = build_indexes(space)
    assert len(built) == 1
    assert build_indexes(space) == []
    exact = np.argsort(-(large.vectors @ large.vectors[5]) / np.linalg.norm(large.vectors, axis=1))[:10]
    found = search(large, large.vectors[5])
    assert (found.plan, found.exact) == ("hnsw", False)
    assert len({chunk for chunk, _ in found.rows} & {large.chunks[i] for i in exact}) >= 9
    assert found.rows == sorted(found.rows, key=lambda row: -row[1])
    # A small one in the same leaf is searched exactly and whole.
    assert len(search(small, large.vectors[5], 30).rows) == 30


def test_an_index_of_signs_takes_the_place_of_the_other_and_back(crowded):
    space, large, small = crowded
    vectors_index = build_indexes(space)
    space.embedding_model.vector_index = "binary"
    signs_index = build_indexes(space)
    assert signs_index != vectors_index
    assert build_indexes(space) == []
    assert value("SELECT count(*) FROM pg_class WHERE relname = ANY(%s)", [*vectors_index, *signs_index]) == 1
    exact = np.argsort(-(large.vectors @ large.vectors[5]) / np.linalg.norm(large.vectors, axis=1))[:10]
    found = search(large, large.vectors[5])
    assert (found.plan, found.exact) == ("hnsw of signs", False)
    assert len({chunk for chunk, _ in found.rows} & {large.chunks[i] for i in exact}) >= 9
    assert found.rows == sorted(found.rows, key=lambda row: -row[1])
    assert found.rows[0][1] == pytest.approx(1, abs=1e-3), "the cosine is that of the vectors"
    assert search(large, large.vectors[5], 601).plan == "hnsw, then exact"
    assert len(search(large, large.vectors[5], documents=[large.documents[0].pk]).rows) == 10
    assert len(search(small, large.vectors[5], 30).rows) == 30
    space.embedding_model.vector_index = "halfvec"
    assert build_indexes(space) == vectors_index
    assert search(large, large.vectors[5]).plan == "hnsw"


@pytest.mark.parametrize(("asked", "used"), [(None, "100"), (10, "10"), (400, "400"), (5000, "1000")])
def test_a_search_says_how_hard_an_index_looks(crowded, asked, used):
    space, large, _ = crowded
    build_indexes(space)
    with transaction.atomic():
        assert search(large, large.vectors[0], ef_search=asked).plan == "hnsw"
        assert value("SELECT current_setting('hnsw.ef_search')") == used


def test_a_short_answer_of_the_index_is_asked_again_exactly(crowded):
    space, large, _ = crowded
    build_indexes(space)
    # The statistics still promise many, the rows are few: HNSW gives less than was asked for.
    found = search(large, large.vectors[5], 601)
    assert found.plan == "hnsw, then exact"
    assert found.exact
    assert len(found.rows) == 600


def test_an_index_left_invalid_by_a_crash_is_built_again(crowded):
    space, _, _ = crowded
    name = build_indexes(space)[0]
    admin = value("SELECT current_setting('is_superuser')", using="owner")
    if admin != "on":
        # Only a superuser can edit the catalogue; a build that is cut off leaves the same state.
        cut_off(space, name)
    else:
        with connections["owner"].cursor() as cursor:
            cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)", [name])
    assert build_indexes(space) == [name]
    assert value("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", name) is True


def cut_off(space, name):
    """A concurrent build waits for older transactions; cancelled there, it leaves an invalid index."""
    leaf = name.removesuffix("_hnsw")
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"DROP INDEX {name}")
        with psycopg.connect(**owner_parameters()) as older:
            older.execute(f"LOCK TABLE {leaf} IN ROW EXCLUSIVE MODE")
            cursor.execute("SET statement_timeout = '300ms'")
            with pytest.raises(Exception, match="statement timeout"):
                cursor.execute(f"CREATE INDEX CONCURRENTLY {name} ON {leaf} USING hnsw (vector halfvec_cosine_ops)")
            cursor.execute("RESET statement_timeout")
    assert value("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", name) is False


def owner_parameters():
    parameters = connections["owner"].get_connection_params()
    return {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if parameters.get(name)}


def test_settings_of_a_search_end_with_its_transaction(crowded):
    space, large, _ = crowded
    memory = value("SELECT set_config('maintenance_work_mem', '65MB', false)", using="owner")
    build_indexes(space)
    assert value("SELECT current_setting('maintenance_work_mem')", using="owner") == memory
    assert search(large, large.vectors[0]).plan == "hnsw"
    assert value("SELECT current_setting('hnsw.iterative_scan')") == "off"


def test_a_model_change_leaves_the_old_space_in_batches(fresh, shelf):
    provision_space(fresh)
    chunks = shelf.add_document(3)
    shelf.add_vectors(chunks, np.ones((3, 256)))
    add_vectors(
        organization=shelf.organization, space=fresh, knowledge_base=shelf.id, rows=[vectors.VectorRow(c, np.ones(256)) for c in chunks]
    )
    # A chunk that goes meanwhile goes from both spaces.
    shelf.documents[0].chunks.filter(pk=chunks[0]).delete()
    assert value("SELECT count(*) FROM embedding_256") == 4
    assert remove_vectors(organization=shelf.organization, space=shelf.space, knowledge_base=shelf.id) == 2
    assert value("SELECT count(*) FROM embedding_256 WHERE space = %s", fresh.pk) == 2


def test_the_first_search_of_a_connection_inside_a_transaction(crowded):
    """pgvector's settings do not exist before its library is loaded, so they have no former value."""
    space, large, _ = crowded
    build_indexes(space)
    connection.close()
    with transaction.atomic():
        before = value("SELECT current_setting('random_page_cost')")
        assert search(large, large.vectors[0]).plan == "hnsw"
        assert search(large, large.vectors[0], documents=[large.documents[0].pk]).plan == "hnsw"
        assert value("SELECT current_setting('random_page_cost')") == before
