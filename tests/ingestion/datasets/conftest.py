"""A client, an upload source and its runs, as in the tests of the API; and queries."""

import pytest

from tests.ingestion.api.conftest import (
    _quick_passwords,
    channel,
    editor,
    kb_url,
    run_now,
    second_editor,
    sender,
    source_url,
    stranger,
    upload,
    viewer,
    work,
)

__all__ = [
    "_quick_passwords",
    "channel",
    "editor",
    "kb_url",
    "run_now",
    "second_editor",
    "sender",
    "source_url",
    "stranger",
    "upload",
    "viewer",
    "work",
]

SALES = "day,region,amount,zip\n" + "".join(
    f"2024-08-{day:02d},{'North' if day % 2 else 'South'},{day}.50,0{day:04d}\n" for day in range(1, 31)
)


@pytest.fixture
def datasets(editor):
    """`datasets()` lists them by name."""

    def listed(client=None, **parameters) -> dict[str, dict]:
        return {row["name"]: row for row in (client or editor).get("/api/v1/datasets", parameters).json()["items"]}

    return listed


@pytest.fixture
def ask(editor):
    """`ask(dataset, sql)` gives the answer of a query."""

    def query(dataset: dict, sql: str, *, client=None, **more):
        return (client or editor).post(f"/api/v1/datasets/{dataset['id']}/query", {"sql": sql, **more}, format="json")

    return query


@pytest.fixture
def sales(upload, run_now, datasets) -> dict:
    """The dataset of a file that was uploaded and run."""
    assert upload(("sales.csv", SALES.encode())).status_code == 200
    run = run_now()
    assert run.status == "succeeded", run.error
    return datasets()["sales"]
