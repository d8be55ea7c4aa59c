"""The languages that a question must be analysed in: those of the documents it may find."""

from collections.abc import Mapping
from uuid import UUID

from kb.models import Document
from kb.stores.contents import Contents
from kb.words.languages import language_name

MOST = 12
_KEPT = 4096
_known: dict[tuple[UUID, int, int], tuple[str, ...]] = {}


def languages_of(organization: UUID, contents: Mapping[UUID, Contents]) -> tuple[str, ...]:
    """Distinct, at most a dozen. Kept until a knowledge base's counts change, because telling them reads a row for each document."""
    keys = {kb: (kb, held.chunks, held.length) for kb, held in contents.items()}
    unknown = [kb for kb, key in keys.items() if key not in _known]
    if unknown:
        if len(_known) + len(unknown) > _KEPT:
            _known.clear()
            unknown = list(keys)
        found: dict[UUID, set[str]] = {kb: set() for kb in unknown}
        rows = Document.objects.filter(organization=organization, knowledge_base__in=unknown, chunk_count__gt=0)
        for kb, language in rows.order_by().values_list("knowledge_base_id", "language").distinct():
            found[kb].add(language_name(language))
        for kb, names in found.items():
            _known[keys[kb]] = tuple(sorted(names))
    return tuple(sorted({name for key in keys.values() for name in _known.get(key, ())}))[:MOST]
