"""The long ones, one JSON line each; progress and findings go to stderr. Exit status 1: a figure that must be 0 is not.

python tests/benchmarks/soak.py [NAME …] [--rounds N] [--seconds S] [--seed N] [--chunks N]
"""

import argparse
import importlib
import inspect
import json
import random
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)

from tests.benchmarks.soak.ground import Bounds, Figures, own_ground, say  # noqa: E402

NAMES = ("kills", "histories", "site_histories", "races", "fuzz", "files", "extraction", "size", "tenants", "change")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; without one, all of them")
    parser.add_argument("--rounds", type=int, default=1_000_000, help="at most so many rounds each")
    parser.add_argument("--seconds", type=float, default=180, help="begin no round after so many seconds (default 180)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of chance; said on stderr")
    parser.add_argument("--chunks", type=int, help="of the soaks that are so large: change, size (default 20,000)")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"There is no soak {', '.join(unknown)}. There are {', '.join(NAMES)}.")
    clean = True
    for name in options.names or NAMES:
        clean &= run(name, options)
    return 0 if clean else 1


def run(name: str, options: argparse.Namespace) -> bool:
    """One soak on an installation of its own, its line printed."""
    module = importlib.import_module(f"tests.benchmarks.soak.{name}")
    figures = Figures.of(name, *module.KEYS)
    say(f"{name}: seed {options.seed}")
    started = time.monotonic()
    try:
        with own_ground(**getattr(module, "SETTINGS", {})) as ground:
            size = {"chunks": options.chunks} if options.chunks and "chunks" in inspect.signature(module.soak).parameters else {}
            module.soak(ground, figures, Bounds(options.rounds, options.seconds), random.Random(f"{name} {options.seed}"), **size)
    except Exception as error:
        traceback.print_exc()
        figures.count("errors", f"the soak itself ended: {type(error).__name__}: {error}")
    print(json.dumps(figures.line(time.monotonic() - started)), flush=True)
    return figures.is_clean


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
