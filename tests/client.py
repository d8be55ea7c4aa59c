"""A small client of the REST API, for journeys, soaks and benchmarks."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from tests.fleet import wait_for


class Client:
    """Every call raises AssertionError with the server's own words when the answer is not a success."""

    def __init__(self, url: str, key: str) -> None:
        self.http = httpx.Client(
            base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {key}"}, timeout=httpx.Timeout(120, connect=5), trust_env=False
        )

    def call(self, method: str, path: str, **options: Any) -> Any:
        response = self.http.request(method, path, **options)
        assert response.is_success, f"{method} {path} -> {response.status_code}: {response.text[:1000]}"
        return response.json() if response.content else None

    def create_knowledge_base(self, name: str, **document: Any) -> tuple[str, str]:
        """(id of a new knowledge base, id of its upload source)."""
        body = {"name": name, "sources": [{"name": "files", "type": "upload", "upload": {"max_files": 10_000}}], **document}
        identifier = self.call("POST", "/knowledge-bases", json=body)["id"]
        sources = self.call("GET", f"/knowledge-bases/{identifier}")["document"]["sources"]
        return identifier, sources[0]["id"] if sources else ""

    def upload(self, knowledge_base: str, source: str, files: Mapping[str, bytes]) -> dict[str, Any]:
        parts = [("files", (name, content)) for name, content in files.items()]
        return self.call("POST", f"/knowledge-bases/{knowledge_base}/sources/{source}/files", files=parts)

    def upload_all(self, knowledge_base: str, source: str, paths: Iterable[Path], *, batch: int = 50) -> int:
        paths = list(paths)
        stored = 0
        for start in range(0, len(paths), batch):
            stored += len(
                self.upload(knowledge_base, source, {path.name: path.read_bytes() for path in paths[start : start + batch]})["stored"]
            )
        return stored

    def start(self, knowledge_base: str, source: str) -> str:
        return self.call("POST", f"/knowledge-bases/{knowledge_base}/sources/{source}/run")["run_id"]

    def run(self, run_id: str) -> dict[str, Any]:
        return self.call("GET", f"/runs/{run_id}")

    def finish(self, run_id: str, *, seconds: float = 120, every: float = 0.2) -> dict[str, Any]:
        """The run once it is closed."""

        def closed() -> dict[str, Any] | None:
            try:
                state = self.run(run_id)
            except httpx.HTTPError:
                return None
            return state if state["finished_at"] else None

        return wait_for(closed, seconds=seconds, what=f"run {run_id}", every=every)

    def ingest(self, knowledge_base: str, source: str, *, seconds: float = 120) -> dict[str, Any]:
        return self.finish(self.start(knowledge_base, source), seconds=seconds)

    def search(self, knowledge_base: str, query: str, **options: Any) -> dict[str, Any]:
        return self.call("POST", "/search", json={"query": query, "knowledge_bases": [knowledge_base], **options})

    def texts(self, knowledge_base: str, query: str, **options: Any) -> list[str]:
        return [hit["text"] for hit in self.search(knowledge_base, query, **options)["hits"]]

    def timed_ingest(self, knowledge_base: str, source: str, *, seconds: float = 1200) -> tuple[float, dict[str, Any]]:
        """Seconds from the request to the run's own end, asked for sparingly: looking costs what is measured."""
        started = datetime.now(UTC).timestamp()
        state = self.finish(self.start(knowledge_base, source), seconds=seconds, every=1.0)
        return datetime.fromisoformat(state["finished_at"]).timestamp() - started, state
