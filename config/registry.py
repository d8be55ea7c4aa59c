"""One style for every kind of extension: name -> "dotted.path:Object", imported when first asked for."""

from collections.abc import Iterator
from importlib import import_module
from threading import Lock
from typing import Any, Generic, TypeVar

from config.errors import InvalidInput

T = TypeVar("T")


class Registry(Generic[T]):
    """`kind` is the word an error message uses, in the singular ("embedding provider")."""

    def __init__(self, kind: str, entries: dict[str, str]) -> None:
        self.kind = kind
        self._entries = dict(entries)
        self._loaded: dict[str, T] = {}
        self._lock = Lock()

    def names(self) -> list[str]:
        return sorted(self._entries)

    def path(self, name: str) -> str:
        """The dotted path behind a name, without importing it."""
        if not isinstance(name, str) or name not in self._entries:
            known = ", ".join(self.names()) or "none"
            raise InvalidInput(f"There is no {self.kind} named {name!r}. Known: {known}.", known=self.names())
        return self._entries[name]

    def load(self, name: str) -> T:
        """The object behind a name; an unknown name is InvalidInput, a path that does not import is an ImportError naming the entry."""
        path = self.path(name)
        if name not in self._loaded:
            value = _import(path, kind=self.kind, name=name)
            with self._lock:
                self._loaded.setdefault(name, value)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())


def _import(path: str, *, kind: str, name: str) -> Any:
    module, separator, attribute = path.partition(":")
    if not separator:
        module, _, attribute = path.rpartition(".")
    try:
        value: Any = import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ImportError(f"The {kind} {name!r} is registered as {path!r}, which cannot be imported: {error}") from error
    return value
