"""Partitions that nothing needs any more go, with their files, and one that is used again stays."""

from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from config.errors import Conflict
from kb import leaving
from kb.models import KnowledgeBaseVersion, SpaceChange
from kb.stores import provision, vectors
from kb.stores.provision import drop_space, provision_space
from kb.stores.vectors import add_vectors, remove_vectors
from tests.kb.stores.conftest import leaves, value

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])


def test_a_space_is_dropped_only_when_nothing_needs_it(fresh, shelf):
    provision_space(fresh)
    shelf.knowledge_base.space = shelf.space = fresh
    shelf.knowledge_base.save()
    shelf.add_vectors(shelf.add_document(3), np.ones((3, 256)))
    with pytest.raises(Conflict, match="another embedding model"):
        drop_space(fresh)
    shelf.knowledge_base.space = None
    shelf.knowledge_base.save()
    with pytest.raises(Conflict, match="still holds vectors"):
        drop_space(fresh)
    while remove_vectors(organization=shelf.organization, space=fresh, knowledge_base=shelf.id):
        pass
    assert drop_space(fresh) is True
    assert drop_space(fresh) is False
    assert fresh.provisioned_at is None
    assert leaves(fresh) == 0
    provision_space(fresh)
    assert leaves(fresh) == 4


def test_a_partition_that_everybody_left_goes_with_its_files(fresh, shelf):
    provision_space(fresh)
    leaving.drop_unused_partitions()
    assert leaves(fresh) == 4, "nothing was ever written there"
    chunks = shelf.add_document(3)
    rows = [vectors.VectorRow(chunk, np.ones(256)) for chunk in chunks]
    add_vectors(organization=shelf.organization, space=fresh, knowledge_base=shelf.id, rows=rows)
    while remove_vectors(organization=shelf.organization, space=fresh, knowledge_base=shelf.id):
        pass
    knowledge_base = shelf.knowledge_base
    version = KnowledgeBaseVersion.objects.create(
        organization=knowledge_base.organization, knowledge_base=knowledge_base, number=9, document={}
    )
    way_back = SpaceChange.objects.create(
        organization=knowledge_base.organization, knowledge_base=knowledge_base, version=version, from_space=fresh,
        to_space=shelf.space, state="grace", grace_until=timezone.now() + timedelta(days=1),
    )  # fmt: skip
    leaving.drop_unused_partitions()
    assert leaves(fresh) == 4, "somebody may go back"
    with pytest.raises(Conflict, match="way back"):
        drop_space(fresh)
    SpaceChange.objects.filter(id=way_back.id).update(state="done")
    leaving.drop_unused_partitions()
    assert leaves(fresh) == 0
    fresh.refresh_from_db()
    assert fresh.provisioned_at is None, "the sweep attaches an empty one"


def test_a_partition_that_is_used_again_while_it_goes_is_attached_again(fresh, shelf, monkeypatch):
    provision_space(fresh)
    chunks = shelf.add_document(3)
    rows = [vectors.VectorRow(chunk, np.ones(256)) for chunk in chunks]
    real = provision._refuse_used

    def look_and_come_in(space):
        real(space)
        add_vectors(organization=shelf.organization, space=fresh, knowledge_base=shelf.id, rows=rows)

    monkeypatch.setattr(provision, "_refuse_used", look_and_come_in)
    with pytest.raises(Conflict, match="just got vectors"):
        drop_space(fresh)
    monkeypatch.undo()
    assert value("SELECT count(*) FROM embedding_256 WHERE space = %s", fresh.pk) == 3
