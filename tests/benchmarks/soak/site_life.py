"""A website that lives: its pages come, change, move and go."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.benchmarks.soak.site_truth import Kind, Node
from tests.benchmarks.soak.texts import Author

START = "/"
SECTIONS = ("/guide", "/news", "/parts")


@dataclass
class Life:
    """`nodes` is the site as it is; each change tells what it was."""

    author: Author
    chance: random.Random
    nodes: dict[str, Node] = field(default_factory=dict)
    number: int = 0

    def begin(self, pages: int) -> None:
        self.nodes[START] = Node(Kind.PAGE, self.author.write(), SECTIONS, listed=False)
        for section in SECTIONS:
            self.nodes[section] = Node(Kind.PAGE, self.author.write(), (), listed=self.chance.random() < 0.5)
        for _ in range(pages - 1 - len(SECTIONS)):
            self.add()

    def of(self, kind: Kind) -> list[str]:
        """Addresses below the sections."""
        return sorted(path for path, node in self.nodes.items() if node.kind == kind and path not in (START, *SECTIONS))

    def live(self) -> str:
        changes: dict[Callable[[], str], int] = {
            self.add: 4, self.edit: 5, self.delete: 4, self.restore: 2, self.move: 2, self.unlink: 2, self.relist: 2, self.clear_out: 1,
        }  # fmt: skip
        return self.chance.choices(list(changes), list(changes.values()))[0]()

    def add(self) -> str:
        self.number += 1
        parent = self.chance.choice([*SECTIONS, *self.of(Kind.PAGE)][:12])
        path = f"{parent if parent in SECTIONS else parent.rpartition('/')[0]}/page-{self.number}"
        linked = self.chance.random() < 0.8
        self.nodes[path] = Node(Kind.PAGE, self.author.write(), listed=not linked or self.chance.random() < 0.6)
        if linked:
            self._link(parent, path)
        return f"add {path}"

    def edit(self) -> str:
        path = self.chance.choice([START, *SECTIONS, *self.of(Kind.PAGE)])
        node = self.nodes[path]
        if node.kind == Kind.PAGE:
            self.nodes[path] = replace(node, text=self.author.revise(node.text))
        return f"edit {path}"

    def delete(self) -> str:
        held = self.of(Kind.PAGE)
        if not held:
            return self.add()
        path = self.chance.choice(held)
        self.nodes[path] = replace(self.nodes[path], kind=Kind.GONE)
        return f"delete {path}"

    def restore(self) -> str:
        gone = self.of(Kind.GONE)
        if not gone:
            return self.edit()
        path = self.chance.choice(gone)
        self.nodes[path] = replace(self.nodes[path], kind=Kind.PAGE)
        return f"restore {path}"

    def move(self) -> str:
        held = self.of(Kind.PAGE)
        if not held:
            return self.add()
        path = self.chance.choice(held)
        self.number += 1
        target = f"/moved/page-{self.number}"
        self.nodes[target] = replace(self.nodes[path], links=self.nodes[path].links)
        self.nodes[path] = Node(Kind.MOVED, target=target, listed=False)
        return f"move {path} to {target}"

    def unlink(self) -> str:
        """It answers as before, and nothing leads there any more."""
        held = self.of(Kind.PAGE)
        if not held:
            return self.add()
        path = self.chance.choice(held)
        self.nodes[path] = replace(self.nodes[path], listed=False)
        for other, node in self.nodes.items():
            self.nodes[other] = replace(node, links=tuple(link for link in node.links if link != path))
        return f"unlink {path}"

    def relist(self) -> str:
        path = self.chance.choice(self.of(Kind.PAGE) or [SECTIONS[0]])
        self.nodes[path] = replace(self.nodes[path], listed=True)
        return f"list {path}"

    def clear_out(self) -> str:
        """Most of the site at once."""
        for path in self.of(Kind.PAGE):
            if self.chance.random() < 0.9:
                self.nodes[path] = replace(self.nodes[path], kind=Kind.GONE)
        return "clear out"

    def _link(self, parent: str, path: str) -> None:
        self.nodes[parent] = replace(self.nodes[parent], links=(*self.nodes[parent].links, path))
