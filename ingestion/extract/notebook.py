"""Jupyter notebooks: prose as Markdown, code in blocks, and what the code printed; pictures are left out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.fences import fence
from ingestion.extract.json_data import JsonExtractor
from ingestion.extract.markdown import first_heading
from ingestion.extract.text import read_text

MAX_OUTPUT_CHARS = 10_000


class NotebookExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        """What has no cells is read as the JSON that it is."""
        decoded = read_text(data, limits=limits, served=served)
        blocks = [] if decoded.cut else list(_blocks(decoded.text))
        if not blocks:
            return JsonExtractor().extract(data, name=name, limits=limits, served=served)
        markdown = "\n\n".join(block.strip("\n") for block in blocks)
        return Extracted(
            markdown=markdown,
            title=first_heading(markdown) or Path(name).stem,
            media_type="application/x-ipynb+json",
            metadata={"encoding": decoded.encoding},
            warnings=decoded.warnings,
        )


def _blocks(text: str) -> Iterator[str]:
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        return
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        return
    language = _language(notebook)
    for cell in cells:
        if not isinstance(cell, dict) or not (source := _joined(cell.get("source")).strip()):
            continue
        if cell.get("cell_type") != "code":
            yield source
            continue
        yield fence(source, language=language)
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else []:
            if shown := _output(output).strip()[:MAX_OUTPUT_CHARS]:
                yield fence(shown)


def _output(output: Any) -> str:
    if not isinstance(output, dict):
        return ""
    data = output.get("data")
    return _joined(output.get("text")) or (_joined(data.get("text/plain")) if isinstance(data, dict) else "")


def _joined(source: Any) -> str:
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str))
    return source if isinstance(source, str) else ""


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) and name.isalnum() else "python"
