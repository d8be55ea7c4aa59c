"""Partitions and HNSW indexes of embedding spaces, made by the owner's role and outside of requests.

Each step is idempotent and waits for locks only briefly: an ATTACH that queued behind a long transaction would make every search queue
behind it.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connections, transaction
from django.db.models import Q
from django.db.utils import OperationalError
from django.utils import timezone
from psycopg import errors, sql

from config.errors import Conflict, Unavailable
from kb.models.knowledge_bases import KnowledgeBase
from kb.models.space_changes import SpaceChange
from kb.models.spaces import EmbeddingSpace
from kb.stores.tables import LEAVES, embedding_name, index_name, leaf_name, signs, space_name
from kb.stores.vectors import EXACT_ROWS, forget_leaves

OWNER = "owner"
LOCK_TIMEOUT_MS = 2000
ATTEMPTS = 8
M = 16
EF_CONSTRUCTION = 100
MAINTENANCE_MEMORY = "512MB"

logger = logging.getLogger(__name__)


def provision_space(space: EmbeddingSpace) -> None:
    """Make the partition of a space with its leaves and set `provisioned_at`. May be repeated and raced."""
    name = space_name(space.dimension, space.pk)
    if not _exists(name):
        _patiently(lambda: _attach(space, name), doing=f"attach the partition of the space {space.pk}")
    if space.provisioned_at is None:
        space.provisioned_at = timezone.now()
        space.save(update_fields=["provisioned_at"])


def drop_space(space: EmbeddingSpace) -> bool:
    """Drop the partition of a space that no knowledge base uses or has vectors in; False when there is none. Conflict while it is used."""
    name, parent = space_name(space.dimension, space.pk), embedding_name(space.dimension)
    if not _exists(name):
        return False
    _refuse_used(space)
    # A detachment that was cut off stays half done until it is finalised.
    if (pending := _attachment(name)) is not None:
        form = "ALTER TABLE {} DETACH PARTITION {} FINALIZE" if pending else "ALTER TABLE {} DETACH PARTITION {} CONCURRENTLY"
        detach = sql.SQL(form).format(sql.Identifier(parent), sql.Identifier(name))
        _patiently(lambda: _execute(detach), doing=f"detach the partition of the space {space.pk}", finalise=(parent, name))
    if _has_rows(name):
        # Somebody came to use it between the look and the detachment.
        _patiently(lambda: _reattach(space, name), doing=f"attach the partition of the space {space.pk} again")
        raise Conflict(f"The space {space.pk} has just got vectors of a knowledge base.")
    _patiently(
        lambda: _execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name))),
        doing=f"drop the partition of the space {space.pk}",
    )
    space.provisioned_at = None
    space.save(update_fields=["provisioned_at"])
    return True


def is_filled(space: EmbeddingSpace) -> bool:
    """Whether the partition takes room on the disk: something was written there, and may have gone again."""
    leaves = [leaf_name(space.dimension, space.pk, remainder) for remainder in range(LEAVES)]
    return bool(_value("SELECT coalesce(sum(pg_relation_size(to_regclass(name))), 0) > 0 FROM unnest(%s::text[]) name", [leaves]))


def build_indexes(space: EmbeddingSpace) -> list[str]:
    """Build what is missing: an HNSW index on each leaf above 20,000 rows, of the kind that the model asks for, without blocking writers.
    Returns the names of those built.

    An index that a crash left invalid is dropped and built again; one that is being built right now is left alone. One of the other kind
    goes when the asked one stands.
    """
    kind = space.embedding_model.vector_index
    built = []
    for remainder in range(LEAVES):
        leaf = leaf_name(space.dimension, space.pk, remainder)
        if not _exists(leaf) or not _exceeds(leaf, EXACT_ROWS):
            continue
        name = index_name(leaf, kind)
        state = _index_state(name)
        if _is_building(leaf):
            continue
        if state == "invalid":
            logger.warning("Index %s is invalid, a build of it was cut off: building it again", name)
            _drop_index(name)
        if state != "valid":
            _build(leaf, name, "vector halfvec_cosine_ops" if kind == "halfvec" else f"{signs(space.dimension)} bit_hamming_ops")
            built.append(name)
        other = index_name(leaf, "binary" if kind == "halfvec" else "halfvec")
        if _index_state(other) is not None:
            _drop_index(other)
    forget_leaves()
    return built


def _attach(space: EmbeddingSpace, name: str) -> None:
    partition, number = sql.Identifier(name), sql.Literal(space.pk)
    parent = sql.Identifier(embedding_name(space.dimension))
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
        if _exists(name):
            return
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_TIMEOUT_MS}ms"])
        cursor.execute(
            sql.SQL(
                "CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS INCLUDING STORAGE, PRIMARY KEY (space, kb, chunk), CHECK (space = {}))"
                " PARTITION BY HASH (kb)"
            ).format(partition, parent, number)
        )
        for remainder in range(LEAVES):
            leaf = sql.Identifier(leaf_name(space.dimension, space.pk, remainder))
            cursor.execute(
                sql.SQL("CREATE TABLE {} PARTITION OF {} FOR VALUES WITH (MODULUS {}, REMAINDER {})").format(
                    leaf, partition, sql.Literal(LEAVES), sql.Literal(remainder)
                )
            )
        # The only statement that touches what others use, and the last one.
        cursor.execute(sql.SQL("ALTER TABLE {} ATTACH PARTITION {} FOR VALUES IN ({})").format(parent, partition, number))


def _reattach(space: EmbeddingSpace, name: str) -> None:
    parent = sql.Identifier(embedding_name(space.dimension))
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_TIMEOUT_MS}ms"])
        cursor.execute(
            sql.SQL("ALTER TABLE {} ATTACH PARTITION {} FOR VALUES IN ({})").format(parent, sql.Identifier(name), sql.Literal(space.pk))
        )


def _has_rows(name: str) -> bool:
    return bool(_value(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(name)).as_string(None), []))


def _drop_index(name: str) -> None:
    _execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name)))


def _build(leaf: str, name: str, indexed: str) -> None:
    statement = sql.SQL("CREATE INDEX CONCURRENTLY {} ON {} USING hnsw ({}) WITH (m = {}, ef_construction = {})").format(
        sql.Identifier(name), sql.Identifier(leaf), sql.SQL(indexed), sql.Literal(M), sql.Literal(EF_CONSTRUCTION)
    )
    started = time.monotonic()
    with _setting("maintenance_work_mem", MAINTENANCE_MEMORY):
        _execute(statement)
    _execute(sql.SQL("ANALYZE {}").format(sql.Identifier(leaf)))
    logger.info("Built index %s in %.1f s", name, time.monotonic() - started)


def _patiently(step: Callable[[], None], *, doing: str, finalise: tuple[str, str] | None = None) -> None:
    """Try a step until its lock is free; each attempt gives way after two seconds."""
    for attempt in range(ATTEMPTS):
        try:
            return step()
        except OperationalError as error:
            if not isinstance(error.__cause__, (errors.LockNotAvailable, errors.DeadlockDetected)):
                raise
            logger.info("Waiting to %s: a lock is held (attempt %d of %d)", doing, attempt + 1, ATTEMPTS)
            time.sleep(min(0.1 * 2**attempt, 5.0))
    raise Unavailable(f"Could not {doing}: a long transaction holds a lock on the table. Try again once it has ended.")


def _refuse_used(space: EmbeddingSpace) -> None:
    if KnowledgeBase.objects.filter(Q(space=space) | Q(named_space=space)).exists():
        raise Conflict(f"The space {space.pk} is used by a knowledge base. Give that another embedding model first.")
    if SpaceChange.objects.filter(Q(to_space=space) | Q(from_space=space), state__in=SpaceChange.LIVE).exists():
        raise Conflict(f"The space {space.pk} is needed by a change of model, or for the way back. Wait for its end, or cancel it.")
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM embedding_use WHERE space = %s)", [space.pk])
        if cursor.fetchone()[0]:
            raise Conflict(f"The space {space.pk} still holds vectors of a knowledge base. Remove them first.")


def _execute(statement: sql.Composed) -> None:
    with connections[OWNER].cursor() as cursor:
        cursor.execute(statement)


def _value(query: str, parameters: list[object]) -> object:
    with connections[OWNER].cursor() as cursor:
        cursor.execute(query, parameters)
        row = cursor.fetchone()
        return row[0] if row else None


def _exists(relation: str) -> bool:
    # Not to_regclass: it remembers that a name was absent, also after waiting for the transaction that made it.
    return bool(
        _value("SELECT EXISTS (SELECT FROM pg_class WHERE relname = %s AND relnamespace = current_schema()::regnamespace)", [relation])
    )


def _exceeds(leaf: str, rows: int) -> bool:
    statement = sql.SQL("SELECT count(*) > %s FROM (SELECT FROM {} LIMIT %s) seen").format(sql.Identifier(leaf))
    return bool(_value(statement.as_string(None), [rows, rows + 1]))


def _attachment(partition: str) -> bool | None:
    """None: detached. True: a detachment is pending. False: attached."""
    return _value("SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = to_regclass(%s)", [partition])


def _index_state(index: str) -> str | None:
    query = "SELECT CASE WHEN indisvalid THEN 'valid' ELSE 'invalid' END FROM pg_index WHERE indexrelid = to_regclass(%s)"
    return _value(query, [index])


def _is_building(leaf: str) -> bool:
    return bool(_value("SELECT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE relid = to_regclass(%s))", [leaf]))


@contextmanager
def _setting(name: str, value: str) -> Iterator[None]:
    """A setting for statements that cannot stand in a transaction, so that SET LOCAL is no choice."""
    before = _value("SELECT current_setting(%s)", [name])
    _value("SELECT set_config(%s, %s, false)", [name, value])
    try:
        yield
    finally:
        try:
            _value("SELECT set_config(%s, %s, false)", [name, before])
        except DatabaseError:
            connections[OWNER].close()
