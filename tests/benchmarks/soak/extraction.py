"""Damaged files straight into the children that read them: read, or refused with a reason; nothing else is raised, nobody dies or hangs."""

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from config.errors import ExtractionError
from ingestion.extract.sandbox import Sandbox
from tests.benchmarks.soak import mutants, office_mutations, pdf_mutations
from tests.benchmarks.soak.ground import Bounds, Figures, Ground, say

KEYS = ("stuck", "errors")
FILES = 500  # of a round
LIMITS = {"max_seconds": 10.0, "max_memory_mb": 400, "max_chars": 200_000}
GRACE_SECONDS = 4.0
# The name's ending -> a damaged file of the format.
MUTATIONS: dict[str, Callable[[random.Random], bytes]] = {
    "pdf": pdf_mutations.mutated,
    **mutants.MUTATIONS,
    **office_mutations.MUTATIONS,
}


def soak(ground: Ground | None, figures: Figures, bounds: Bounds, chance: random.Random, *, files: int = FILES) -> None:
    """Needs no installation: a round is so many files through one child."""
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder, Sandbox(size=1) as sandbox:
        while bounds.allow(figures.rounds):
            say(f"extraction: round {figures.rounds}")
            for _ in range(files):
                ending = chance.choice(list(MUTATIONS))
                path = Path(folder, f"a.{ending}")
                path.write_bytes(MUTATIONS[ending](chance))
                started = time.monotonic()
                outcomes[_read(sandbox, figures, path)] += 1
                slowest = max(slowest, time.monotonic() - started)
            figures.rounds += 1
        figures.notes |= {"files": outcomes.total(), "outcomes": dict(sorted(outcomes.items())), "slowest_seconds": round(slowest, 1)}


def _read(sandbox: Sandbox, figures: Figures, path: Path) -> str:
    """What became of it: "read", or the reason. Findings keep the file."""
    started = time.monotonic()
    try:
        sandbox.run({"op": "extract", "path": str(path), "name": path.name, "limits": LIMITS})
        outcome = "read"
    except ExtractionError as error:
        outcome = error.reason
        if outcome in ("internal", "crashed") or not error.message.strip():
            figures.count("errors", f"{_kept(path)}: {outcome}: {error.message}")
    if time.monotonic() - started > LIMITS["max_seconds"] + GRACE_SECONDS:
        figures.count("stuck", f"{_kept(path)} took {time.monotonic() - started:.1f} s")
    return outcome


def _kept(path: Path) -> Path:
    copy = Path(tempfile.gettempdir(), f"extraction-{uuid4().hex}{path.suffix}")
    copy.write_bytes(path.read_bytes())
    return copy
