"""What a measurement must reach: one JSON line a bar, and whether it was reached."""

import json
from dataclasses import dataclass, field


@dataclass
class Bars:
    """Prints each bar as it is known and remembers whether all were reached: `sys.exit(bars.status)`."""

    missed: list[str] = field(default_factory=list)

    def at_least(self, name: str, value: float | None, limit: float) -> None:
        self._say(name, value, limit, value is not None and value >= limit, "≥")

    def at_most(self, name: str, value: float | None, limit: float) -> None:
        self._say(name, value, limit, value is not None and value <= limit, "≤")

    @property
    def status(self) -> int:
        return 1 if self.missed else 0

    def _say(self, name: str, value: float | None, limit: float, reached: bool, sign: str) -> None:
        if not reached:
            self.missed.append(name)
        said = {"bar": name, "value": None if value is None else round(value, 4), "limit": f"{sign} {round(limit, 4):g}"}
        print(json.dumps(said | {"pass": reached}, ensure_ascii=False), flush=True)
