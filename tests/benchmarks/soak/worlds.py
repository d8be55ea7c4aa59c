"""One organization with one of everything, and the documented operations with a body that each accepts."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.benchmarks.soak.ground import Ground
from tests.client import Client
from tests.fleet import wait_for
from tests.installation import manage

PARAMETER = re.compile(r"\{(\w+)\}")
_MAKE = """
from kb import services
from kb.models import Organization, User
organization = Organization.objects.filter(name={name!r}).first() or services.create_organization(name={name!r})
user = User.objects.create(username={user!r})
services.add_member(organization, user=user, role="editor")
print(user.id, services.create_api_key(organization, name={user!r}, role="admin")[1])
"""


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path as the schema describes it."""

    method: str
    path: str
    parameters: tuple[tuple[str, str], ...]  # (name, where)
    takes_json: bool
    takes_form: bool

    @property
    def ids(self) -> list[str]:
        return PARAMETER.findall(self.path)

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def operations(client: Client) -> list[Operation]:
    """All that the schema documents."""
    schema = client.http.get("/schema", headers={"Accept": "application/vnd.oai.openapi+json"}).json()
    return list(_operations(schema))


def _operations(schema: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in schema["paths"].items():
        for method, described in methods.items():
            content = described.get("requestBody", {}).get("content", {})
            parameters = tuple((entry["name"], entry["in"]) for entry in described.get("parameters", []) if entry["in"] != "path")
            yield Operation(
                method.upper(), path.removeprefix("/api/v1"), parameters, "application/json" in content, "multipart/form-data" in content
            )


@dataclass
class World:
    """An organization's client, and ids of what it has: by the name of the path parameter."""

    client: Client
    organization: str
    ids: dict[str, list[str]] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    mark: str = ""
    secret: str = ""  # the name of one

    def close(self) -> None:
        self.client.http.close()

    def body(self, operation: Operation) -> dict[str, Any]:
        """Options of a request that the operation accepts."""
        if operation.takes_form:
            return {"files": [("files", (f"{uuid4().hex[:8]}.md", b"# Title\n\nSome words of a file that was sent."))]}
        made = self._json(operation)
        return {} if made is None else {"json": made}

    def _json(self, operation: Operation) -> Any:
        name = f"made {uuid4().hex[:10]}"
        path = operation.path
        if not operation.takes_json:
            return None
        if path.endswith("/ingest"):
            return {"text": f"Some words about {self.mark}.", "document_name": name, "replace": True}
        if path.startswith("/search"):
            query = {"query": self.mark, "knowledge_bases": self.ids["kb_id"][:1]}
            return query if path == "/search" else query | {"variants": [{"mode": "keyword"}, {"mode": "vector"}]}
        if path.endswith("/duplicate"):
            return {"name": name}
        if path.endswith("/rollback"):
            return {"to": 1}
        if "/grants/" in path:
            return {"level": "viewer"}
        if path.startswith("/members"):
            return {"role": "editor"}
        if path == "/secrets":
            return {"name": f"S{uuid4().hex[:8]}", "value": "rhubarb"}
        if path == "/api-keys":
            return {"name": name, "role": "viewer"}
        if path.startswith("/embedding-models"):
            return self.model | {"name": name}
        if path.startswith("/rerankers"):
            return self.reranker(name)
        if "/judgements" in path:
            return self.judgement(name)
        document = {key: value for key, value in self.document.items() if key != "sources"}
        return document | {"name": name, "sources": [{"name": "files", "type": "upload"}]} if operation.method == "POST" else self.document

    def reranker(self, name: str) -> dict[str, Any]:
        return {"name": name, "provider": "cohere", "model": "rerank-v3.5", "credential": self.secret}

    def judgement(self, question: str) -> dict[str, Any]:
        return {"question": question, "expected": [{"document": self.ids["document_id"][0]}]}


def make_world(ground: Ground, organization: str) -> World:
    """Fill an organization (made where needed) with one of everything that has an id."""
    script = _MAKE.format(name=organization, user=f"user-{uuid4().hex[:8]}")
    user_id, key = manage(ground.environment, "shell", "-v", "0", "-c", script).splitlines()[-1].split()
    client = Client(ground.fleet.url, key)
    world = World(client, organization, mark=f"mark{uuid4().hex[:8]}x0")
    world.model = {"name": f"soak-{uuid4().hex[:8]}", "provider": "hashing", "model": "words", "dimension": 384, "max_input_tokens": 256}
    model = client.call("POST", "/embedding-models", json=world.model)
    theirs = Ground(ground.fleet, client, ground.environment, ground.home)
    knowledge_base, sources = theirs.make_knowledge_base(world.model["name"], "files", description=f"about {world.mark}")
    source = sources["files"]
    file = client.upload(knowledge_base, source, {f"{world.mark}.md": f"# File\n\nSome words about {world.mark} in a file.".encode()})[
        "stored"
    ][0]
    run = client.ingest(knowledge_base, source)
    pushed = client.call(
        "POST", f"/knowledge-bases/{knowledge_base}/ingest", json={"text": f"More about {world.mark}.", "document_name": world.mark}
    )
    path = f"/knowledge-bases/{knowledge_base}/ingestions/{pushed['ingestion_id']}"
    wait_for(lambda: client.call("GET", path)["status"] == "completed", seconds=60, what="a push")
    trace = client.search(knowledge_base, world.mark)["trace_id"]
    secret = client.call("POST", "/secrets", json={"name": f"S{uuid4().hex[:8]}", "value": "rhubarb"})
    other = client.call("POST", "/api-keys", json={"name": f"other {uuid4().hex[:8]}"})
    client.call("PUT", f"/knowledge-bases/{knowledge_base}/grants/{user_id}", json={"level": "viewer"})
    world.document = client.call("GET", f"/knowledge-bases/{knowledge_base}")["document"]
    world.ids = {
        "kb_id": [knowledge_base],
        "knowledge_base_id": [knowledge_base],
        "source_id": [source],
        "document_id": [file["file_id"], pushed["document_id"]],
        "file_id": [file["file_id"]],
        "run_id": [run["id"]],
        "ingestion_id": [pushed["ingestion_id"]],
        "trace_id": [trace],
        "model_id": [model["id"]],
        "secret_id": [secret["id"]],
        "key_id": [other["id"]],
        "user_id": [user_id],
        "number": ["1"],
    }
    world.secret = secret["name"]
    _fill_files(client, world, knowledge_base)
    _fill_measures(client, world, f"/knowledge-bases/{knowledge_base}")
    return world


def _fill_files(client: Client, world: World, knowledge_base: str) -> None:
    """A channel with a file and a table in it, an upload under way, a bound service."""
    channel = client.call("POST", "/channels", json={"name": f"channel {uuid4().hex[:8]}", "knowledge_base_id": knowledge_base})["id"]
    table = "\n".join(["number,word", *(f"{number},{world.mark}" for number in range(30))]).encode()
    for name, content in ((f"{world.mark}.md", f"Words about {world.mark}.".encode()), (f"{world.mark}.csv", table)):
        sent = client.call("POST", "/files", files={"file": (name, content)}, data={"channel": channel, "visibility": "organization"})
        world.ids["file_id"].append(sent["id"])
    sets = wait_for(lambda: client.call("GET", "/datasets")["items"], seconds=60, what="a dataset")
    announced = {"file_name": "later.md", "size": 3, "sha256": "0" * 64, "channel": channel}
    upload = client.call("POST", "/files/upload-url", json=announced)["complete_url"].rsplit("/", 2)[1]
    bound = {"purpose": "vision", "endpoint": "https://vision.example/v1", "credential": world.secret}
    world.ids |= {
        "channel_id": [channel],
        "dataset_id": [each["id"] for each in sets],
        "upload_id": [upload],
        "binding_id": [client.call("POST", "/service-bindings", json=bound)["id"]],
    }


def _fill_measures(client: Client, world: World, path: str) -> None:
    """A reranker, and what tells how good the answers are."""
    world.ids |= {
        "reranker_id": [client.call("POST", "/rerankers", json=world.reranker(f"reranker {uuid4().hex[:8]}"))["id"]],
        "judgement_id": [client.call("POST", f"{path}/judgements", json=world.judgement(f"Where is {world.mark}?"))["id"]],
        "evaluation_id": [client.call("POST", f"{path}/evaluations", json={})["id"]],
        "check_id": [client.call("POST", f"{path}/recall-checks", json={})["id"]],
    }


def absent(parameter: str) -> str:
    """An id of the right form that nobody has."""
    return "987654321" if parameter in ("user_id", "number") else str(uuid4())


def told(text: str, world: World) -> str:
    """What of a world stands in an answer: its mark or one of its ids; empty if nothing does."""
    ids = [value for name, values in world.ids.items() if name not in ("user_id", "number") for value in values]
    return next((secret for secret in (world.mark, *ids) if secret in text or secret.replace("-", "") in text), "")


def shown(value: Any) -> str:
    return json.dumps(value, default=repr)[:300]
