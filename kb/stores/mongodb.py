"""MongoDB Atlas, where its client is installed."""

from importlib.util import find_spec

from kb.stores.base import StoreKind, StoreSpec, VectorStore


def open_atlas(spec: StoreSpec) -> VectorStore:
    from kb.stores.mongodb_atlas import AtlasStore

    return AtlasStore(spec)


def missing() -> str:
    return "" if find_spec("pymongo") else "The client of MongoDB is not installed. Install requirements/mongodb.txt."


KIND = StoreKind(open_atlas, missing=missing)
