from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ingestion.extract.sandbox import Sandbox
from ingestion.recognize.engines import print_engine


@pytest.fixture(scope="session")
def engine():
    found = print_engine()
    if found is None:
        pytest.skip("no text recognition is installed (Debian: apt install tesseract-ocr, or requirements/ocr.txt)")
    return found


@pytest.fixture(scope="session")
def recognizer(engine) -> Iterator[Sandbox]:
    with Sandbox(size=1, languages=False, readable=engine.folders) as sandbox:
        yield sandbox


@pytest.fixture
def recognize(recognizer, engine, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """What the closed-in child makes of a part of these bytes."""

    def ask(content: bytes, *, kind: str = "picture", page: int | None = 1, **more: Any) -> dict[str, Any]:
        path = tmp_path / "content"
        path.write_bytes(content)
        limits = {"max_seconds": 60, "max_memory_mb": 1536}
        part = {"kind": kind, "page": page, "start": None, "end": None}
        request = {"op": "recognize", "path": str(path), "name": "scan", "part": part, "limits": limits}
        return recognizer.run({**request, "engine": asdict(engine), "languages": ["eng"], **more})

    return ask


@pytest.fixture(scope="session")
def shared_documents() -> Path:
    folder = Path(__file__).resolve().parents[4] / "shared" / "data" / "documents"
    if not folder.is_dir():
        pytest.skip("the real documents are not there (../shared/data/documents)")
    return folder
