import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingestion.extract import Extracted, Limits, Served, extract
from ingestion.extract.sandbox import Sandbox

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "documents"


@pytest.fixture(scope="session")
def shared_documents() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the real documents are not there (../shared/data/documents)")
    return SHARED


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Extracted]:
    """Extracts bytes or text in this process, as a file of that name."""

    def _read(
        content: bytes | str, *, name: str = "sample.txt", declared_type: str | None = None, served: Served | None = None, **limits: object
    ) -> Extracted:
        path = tmp_path / "content"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return extract(path, name=name, declared_type=declared_type, limits=Limits(**limits), served=served)  # type: ignore[arg-type]

    return _read


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(size=1) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def hostile() -> Iterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ingestion.extract.process.CHILD_MODULE", "tests.ingestion.extract.hostile")
        with Sandbox(languages=False) as sandbox:
            yield sandbox


@pytest.fixture
def request_for(tmp_path: Path) -> Callable[..., dict]:
    def _request(*deeds: list, name: str = "deeds.txt", outbox: Path | None = None, **limits: object) -> dict:
        path = tmp_path / f"deeds-{len(list(tmp_path.iterdir()))}"
        path.write_text(json.dumps(deeds))
        return {"op": "extract", "path": str(path), "name": name, "limits": limits, "outbox": str(outbox) if outbox else None}

    return _request
