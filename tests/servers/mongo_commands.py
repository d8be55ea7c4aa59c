"""What the MongoDB server does with a command: documents, search indexes, and who may ask."""

import base64
import hashlib
import hmac
import os
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from bson import Int64
from bson.binary import Binary

MOST = 10_000
_ITERATIONS = 4096
# What drivers add to every command.
_ALWAYS = {"$db", "lsid", "$clusterTime", "txnNumber", "writeConcern", "maxTimeMS", "$readPreference", "readConcern", "comment"}


class Failed(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class SearchIndex:
    """`polls`: how often it still says that it is being built. `behind`: how many searches still see what stood before."""

    name: str
    definition: dict[str, Any]
    polls: int
    seen: dict[Any, dict[str, Any]] = field(default_factory=dict)
    behind: int = 0


@dataclass
class Shelf:
    documents: dict[Any, dict[str, Any]] = field(default_factory=dict)
    indexes: dict[str, SearchIndex] = field(default_factory=dict)


@dataclass
class Cluster:
    """`hosts` are told to clients; `failing`: (code, message) for everything but hello; `write_errors` by id, in an answer to an update."""

    address: str
    user: tuple[str, str] | None
    hosts: list[str] = field(default_factory=list)
    shelves: dict[str, Shelf] = field(default_factory=dict)
    failing: tuple[int, str] | None = None
    write_errors: dict[Any, tuple[int, str]] = field(default_factory=dict)
    polls: int = 2
    lag: int = 1
    halves_graph: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def hello(self) -> dict[str, Any]:
        return {
            "ismaster": True,
            "isWritablePrimary": True,
            "helloOk": True,
            "setName": "rs0",
            "setVersion": 1,
            "hosts": [self.address, *self.hosts],
            "me": self.address,
            "primary": self.address,
            "maxBsonObjectSize": 16 * 2**20,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
            "logicalSessionTimeoutMinutes": 30,
            "minWireVersion": 0,
            "maxWireVersion": 25,
        }

    def perform(self, name: str, command: dict[str, Any]) -> dict[str, Any]:
        if self.failing:
            raise Failed(*self.failing)
        act = getattr(self, f"do_{name}", None)
        if act is None:
            raise Failed(59, f"no such command: '{name}'")
        return act(command) or {}

    def do_ping(self, command: dict[str, Any]) -> None:
        pass

    do_endSessions = do_killCursors = do_ping

    def do_create(self, command: dict[str, Any]) -> None:
        _only(command, "create")
        if command["create"] in self.shelves:
            raise Failed(48, "Collection already exists.")
        self.shelves[command["create"]] = Shelf()

    def do_createIndexes(self, command: dict[str, Any]) -> None:
        _only(command, "createIndexes", "indexes")

    def do_createSearchIndexes(self, command: dict[str, Any]) -> dict[str, Any]:
        _only(command, "createSearchIndexes", "indexes")
        shelf = self._shelf(command["createSearchIndexes"])
        for one in command["indexes"]:
            _only(one, "name", "type", "definition")
            if one["name"] in shelf.indexes:
                raise Failed(68, f"Index {one['name']} already exists.")
            kinds = {"vector": {"type", "path", "numDimensions", "similarity"}, "filter": {"type", "path"}}
            if one["type"] != "vectorSearch" or any(set(each) != kinds[each["type"]] for each in one["definition"]["fields"]):
                raise Failed(9, "Attribute mappings missing or unexpected")
            shelf.indexes[one["name"]] = SearchIndex(one["name"], one["definition"], self.polls, behind=self.lag)
        return {"indexesCreated": [{"id": "0", "name": one["name"]} for one in command["indexes"]]}

    def do_update(self, command: dict[str, Any]) -> dict[str, Any]:
        _only(command, "update", "updates", "ordered")
        shelf = self.shelves.setdefault(command["update"], Shelf())
        errors, upserted = [], []
        for position, one in enumerate(command["updates"]):
            _only(one, "q", "u", "upsert", "multi")
            identifier = one["q"]["_id"]
            if identifier in self.write_errors:
                code, message = self.write_errors[identifier]
                errors.append({"index": position, "code": code, "errmsg": message})
                continue
            if identifier not in shelf.documents:
                upserted.append({"index": position, "_id": identifier})
            shelf.documents[identifier] = {"_id": identifier, **one["u"]}
        self._changed(shelf)
        number = len(command["updates"]) - len(errors)
        return {"n": number, "nModified": number - len(upserted), "upserted": upserted, **({"writeErrors": errors} if errors else {})}

    def do_delete(self, command: dict[str, Any]) -> dict[str, Any]:
        _only(command, "delete", "deletes", "ordered")
        shelf, number = self.shelves.get(command["delete"], Shelf()), 0
        for one in command["deletes"]:
            for identifier in [key for key, document in shelf.documents.items() if _meets(document, one["q"])]:
                del shelf.documents[identifier]
                number += 1
        self._changed(shelf)
        return {"n": number}

    def do_find(self, command: dict[str, Any]) -> dict[str, Any]:
        _only(command, "find", "filter", "projection", "sort", "limit")
        if command["projection"] != {"_id": False, "chunk": True} or command["sort"] != {"chunk": 1}:
            raise Failed(2, "only ids in their order are asked for here")
        shelf = self.shelves.get(command["find"], Shelf())
        found = sorted(one["chunk"] for one in shelf.documents.values() if _meets(one, command["filter"]))
        return _cursor([{"chunk": chunk} for chunk in found[: command["limit"] or None]])

    def do_aggregate(self, command: dict[str, Any]) -> dict[str, Any]:
        _only(command, "aggregate", "pipeline", "cursor")
        first, *rest = command["pipeline"]
        if set(first) == {"$listSearchIndexes"} and not rest:
            return _cursor(self._listed(command["aggregate"], **first["$listSearchIndexes"]))
        if set(first) != {"$vectorSearch"} or rest != [{"$project": {"_id": True, "score": {"$meta": "vectorSearchScore"}}}]:
            raise Failed(40324, "Unrecognized pipeline stage name")
        return _cursor(self._search(command["aggregate"], first["$vectorSearch"]))

    def _listed(self, collection: str, name: str | None = None) -> list[dict[str, Any]]:
        found = []
        for index in self._shelf(collection).indexes.values():
            if name in (None, index.name):
                is_ready, index.polls = index.polls <= 0, index.polls - 1
                told = {"id": "0", "name": index.name, "type": "vectorSearch", "latestDefinition": index.definition}
                found.append({**told, "status": "READY" if is_ready else "BUILDING", "queryable": is_ready})
        return found

    def _search(self, collection: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
        way = "exact" if "exact" in asked else "numCandidates"
        if set(asked) != {"index", "path", "queryVector", "limit", "filter", way}:
            raise Failed(9, "unrecognized or missing field")
        if way == "exact" and asked["exact"] is not True:
            raise Failed(9, '"numCandidates" is required unless "exact" is true')
        if way == "numCandidates" and not asked["limit"] <= asked["numCandidates"] <= MOST:
            raise Failed(9, '"numCandidates" must be at least "limit" and at most 10000')
        index = self.shelves.get(collection, Shelf()).indexes.get(asked["index"])
        if index is None or index.polls >= 0:
            return []
        vectors = {one["path"]: one["numDimensions"] for one in index.definition["fields"] if one["type"] == "vector"}
        length = vectors.get(asked["path"])
        if length != len(asked["queryVector"]):
            raise Failed(8, f"vector field is indexed with {length} dimensions but queried with {len(asked['queryVector'])}")
        filters = {one["path"] for one in index.definition["fields"] if one["type"] == "filter"}
        for path in asked["filter"]:
            if path not in filters:
                raise Failed(9, f"Path '{path}' needs to be indexed as token")
        index.behind -= 1
        if index.behind < 0:
            index.seen = dict(self.shelves[collection].documents)
        return self._nearest(index, asked, length, is_half=self.halves_graph and way != "exact")

    def _nearest(self, index: SearchIndex, asked: dict[str, Any], length: int, *, is_half: bool) -> list[dict[str, Any]]:
        found = [(key, _numbers(one["vector"])) for key, one in index.seen.items() if _meets(one, asked["filter"])]
        found = [(key, vector) for key, vector in found if len(vector) == length]  # what has another length is not indexed
        if not found:
            return []
        rows, question = np.array([vector for _, vector in found]), np.array(asked["queryVector"])
        scores = (1 + rows @ question / (np.linalg.norm(rows, axis=1) * np.linalg.norm(question))) / 2
        best = sorted(zip((key for key, _ in found), scores.tolist(), strict=True), key=lambda row: -row[1])[: asked["limit"]]
        return [{"_id": key, "score": score} for key, score in best[: len(best) // 2 if is_half else None]]

    def _shelf(self, name: str) -> Shelf:
        if name not in self.shelves:
            raise Failed(26, f"Collection '{name}' does not exist.")
        return self.shelves[name]

    def _changed(self, shelf: Shelf) -> None:
        for index in shelf.indexes.values():
            index.behind = self.lag


@dataclass
class Login:
    """Of one connection: SCRAM-SHA-256, where the cluster knows a user."""

    cluster: Cluster
    is_known: bool = False
    _signed: str = ""
    _nonce: str = ""

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        name = next(iter(command))
        try:
            with self.cluster.lock:
                return {**self._answer(name, command), "ok": 1.0}
        except Failed as failed:
            return {"ok": 0.0, "code": failed.code, "codeName": "Error", "errmsg": str(failed)}

    def _answer(self, name: str, command: dict[str, Any]) -> dict[str, Any]:
        if name in ("hello", "ismaster", "isMaster"):
            return self.cluster.hello() | ({"saslSupportedMechs": ["SCRAM-SHA-256"]} if "saslSupportedMechs" in command else {})
        if name == "saslStart":
            return self._start(command)
        if name == "saslContinue":
            return self._prove(command)
        if self.cluster.user and not self.is_known:
            raise Failed(13, f"command {name} requires authentication")
        return self.cluster.perform(name, command)

    def _start(self, command: dict[str, Any]) -> dict[str, Any]:
        first = command["payload"].decode()
        asked = dict(part.split("=", 1) for part in first.split(",")[2:])
        if command["mechanism"] != "SCRAM-SHA-256" or not self.cluster.user or asked["n"] != self.cluster.user[0]:
            raise Failed(18, "Authentication failed.")
        self._nonce = asked["r"] + base64.b64encode(os.urandom(12)).decode()
        salt = base64.b64encode(b"some salt of ours").decode()
        reply = f"r={self._nonce},s={salt},i={_ITERATIONS}"
        self._signed = f"{first[3:]},{reply}"
        return {"conversationId": 1, "done": False, "payload": Binary(reply.encode())}

    def _prove(self, command: dict[str, Any]) -> dict[str, Any]:
        last = command["payload"].decode()
        if not last:
            return {"conversationId": 1, "done": True, "payload": Binary(b"")}
        bare, _, proof = last.rpartition(",p=")
        signed = f"{self._signed},{bare}".encode()
        salted = hashlib.pbkdf2_hmac("sha256", self.cluster.user[1].encode(), b"some salt of ours", _ITERATIONS)
        stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
        signature = hmac.digest(stored, signed, "sha256")
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        if hashlib.sha256(key).digest() != stored or f"r={self._nonce}" not in bare:
            raise Failed(18, "Authentication failed.")
        self.is_known = True
        server = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        return {"conversationId": 1, "done": True, "payload": Binary(b"v=" + base64.b64encode(server))}


def _only(given: dict[str, Any], *known: str) -> None:
    for name in given:
        if name not in known and name not in _ALWAYS:
            raise Failed(40415, f"BSON field '{name}' is an unknown field.")


def _meets(document: dict[str, Any], conditions: dict[str, Any]) -> bool:
    for path, condition in conditions.items():
        ((operator, value),) = condition.items()
        held = document.get(path)
        if operator not in ("$eq", "$in", "$gt"):
            raise Failed(2, f"unknown operator: {operator}")
        if not ((operator == "$eq" and held == value) or (operator == "$in" and held in value) or (operator == "$gt" and held > value)):
            return False
    return True


def _numbers(vector: Any) -> list[float]:
    return list(vector.as_vector().data) if isinstance(vector, Binary) else list(vector)


def _cursor(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"cursor": {"firstBatch": rows, "id": Int64(0), "ns": "lectern.x"}}
