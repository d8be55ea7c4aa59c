"""The application's own Postgres as a store: its points are written in the transaction that writes the chunks, and go with them."""

from collections.abc import Collection, Sequence

from django.db import connection
from psycopg import sql

from kb.stores.base import Place, Point, StoreKind, StoreSpec, VectorMatches, VectorQuery
from kb.stores.cosines import read_cosines
from kb.stores.tables import embedding_table
from kb.stores.vectors import EXACT, VectorRow, add_vectors, remove_vectors, search_vectors


class PgVectorStore:
    """`remove` of single points is for whoever keeps the chunks: with a chunk its vectors go by a trigger."""

    def __init__(self, spec: StoreSpec) -> None:
        self.spec = spec

    def add(self, place: Place, points: Sequence[Point]) -> None:
        rows = [VectorRow(point.chunk, point.vector) for point in points]
        add_vectors(organization=place.organization, space=place.space, knowledge_base=place.knowledge_base, rows=rows)

    def remove(self, place: Place, chunks: Collection[int] | None) -> None:
        if chunks is None:
            scope = {"organization": place.organization, "space": place.space, "knowledge_base": place.knowledge_base}
            while remove_vectors(**scope):
                pass
            return
        statement = sql.SQL("DELETE FROM {} WHERE space = %s AND kb = %s AND chunk = ANY(%s) AND organization = %s")
        with connection.cursor() as cursor:
            cursor.execute(
                statement.format(embedding_table(place.space.dimension)),
                [place.space.pk, place.knowledge_base, list(chunks), place.organization],
            )

    def search(self, query: VectorQuery) -> VectorMatches:
        scope = {"organization": query.organization, "space": query.space, "knowledge_bases": query.knowledge_bases}
        if query.chunks is not None:
            found = read_cosines(query=query.vector, chunks=list(query.chunks), **scope)
            return VectorMatches(sorted(found.items(), key=lambda row: (-row[1], row[0]))[: query.limit], True, EXACT)
        return search_vectors(
            query=query.vector, limit=query.limit, documents=query.documents, ef_search=query.ef_search, size=query.size, **scope
        )

    def chunks_after(self, place: Place, after: int, limit: int) -> list[int]:
        statement = sql.SQL(
            "SELECT chunk FROM {} WHERE space = %s AND kb = %s AND chunk > %s AND organization = %s ORDER BY chunk LIMIT %s"
        )
        with connection.cursor() as cursor:
            cursor.execute(
                statement.format(embedding_table(place.space.dimension)),
                [place.space.pk, place.knowledge_base, after, place.organization, limit],
            )
            return [row[0] for row in cursor.fetchall()]


KIND = StoreKind(PgVectorStore, in_transaction=True)
