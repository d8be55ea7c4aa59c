"""A channel for tests: files sent through the API, and worked in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rest_framework.test import APIClient

FILES = "/api/v1/files"


@dataclass
class Sender:
    """`send(b"…", title="Note")` puts a file into the channel; `work()` takes in what is open."""

    client: APIClient
    channel: str
    run: Callable[..., object]

    def post(self, content: bytes, *, client: APIClient | None = None, media_type: str = "text/markdown", **said: Any):
        said = {"channel": self.channel, **said}
        query = "&".join(f"{name}={_quoted(value)}" for name, value in said.items())
        return (client or self.client).generic("POST", f"{FILES}?{query}", content, content_type=media_type)

    def send(self, content: bytes, **said: Any) -> dict[str, Any]:
        answer = self.post(content, **said)
        assert answer.status_code == 201, answer.content
        return answer.json()

    def work(self, until: str | None = None) -> None:
        """Work every open run to its end, oldest first."""
        from ingestion.models import IngestionRun

        for run_id in list(IngestionRun.objects.filter(finished_at=None).order_by("created_at").values_list("id", flat=True)):
            self.run(run_id, until)

    def file(self, identifier: str, client: APIClient | None = None) -> dict[str, Any]:
        answer = (client or self.client).get(f"{FILES}/{identifier}")
        assert answer.status_code == 200, answer.content
        return answer.json()

    def texts(self, question: str, client: APIClient | None = None, **options: Any) -> list[str]:
        """What answers a question, whatever its score."""
        body = {"query": question, "min_score": 0, **options}
        answer = (client or self.client).post("/api/v1/search", body, format="json")
        assert answer.status_code == 200, answer.content
        return [hit["text"] for hit in answer.json()["hits"]]


def _quoted(value: Any) -> str:
    import json
    from urllib.parse import quote

    return quote(value if isinstance(value, str) else json.dumps(value), safe="")
