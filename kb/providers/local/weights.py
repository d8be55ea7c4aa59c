"""Which files a local model is, and whether they are the ones that were meant."""

import hashlib
import json
import mmap
from pathlib import Path

import numpy as np

from config.errors import InvalidInput
from kb.providers.base import ModelSpec
from kb.providers.tokens import PACKAGED_MODEL, local_folder, packaged_folder

# The sum of sentence-transformers/all-MiniLM-L6-v2 as its authors publish it.
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def find_folder(spec: ModelSpec) -> Path:
    """The model's folder, its weights checked against the known sum (or `parameters.sha256` for a model of one's own)."""
    folder = local_folder(spec.model)
    if folder is None:
        raise InvalidInput(
            f"The openvino backend found no folder {spec.model!r} for the model {spec.name}. Name {PACKAGED_MODEL}, or the path of a "
            "sentence-transformers folder on this machine; for a name that must be fetched, set parameters.backend to torch."
        )
    wanted = PACKAGED_SHA256 if folder == packaged_or_none() else spec.parameters.get("sha256")
    if wanted:
        check_weights(folder / "model.safetensors", sha256=str(wanted))
    return folder


def packaged_or_none() -> Path | None:
    try:
        return packaged_folder()
    except InvalidInput:
        return None


def check_weights(path: Path, *, sha256: str) -> None:
    """Refuse weights that are not byte for byte the expected ones: they would give other vectors without anybody noticing."""
    _check_present(path)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256.lower():
        raise InvalidInput(
            f"The weights in {path} are not the expected ones (sha256 {found}, expected {sha256}). They were changed or damaged: "
            "install the model's package again, or register a changed model under a sum and name of its own."
        )


def _check_present(path: Path) -> None:
    if not path.is_file():
        raise InvalidInput(f"The model folder {path.parent.name} has no {path.name}. Install the model again, or use backend torch.")


class MappedWeights:
    """The tensors of a safetensors file as views of the mapped file, so that the operating system may forget what was read."""

    _TYPES = {"F32": np.float32, "F16": np.float16}

    def __init__(self, path: Path) -> None:
        _check_present(path)
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # OpenVINO shares only what it could write; it does not
            self._start = 8 + int.from_bytes(self._map[:8], "little")
            self._index = json.loads(self._map[8 : self._start])
        except ValueError:
            raise InvalidInput(f"{path} is no safetensors file, or a damaged one. Copy the model again.") from None
        self.names = frozenset(self._index) - {"__metadata__"}

    def read(self, name: str) -> np.ndarray:
        """As float32: a view where the file holds that, else a copy."""
        entry = self._index[name]
        if entry["dtype"] not in self._TYPES:
            raise InvalidInput(
                f"The weights hold numbers of the type {entry['dtype']}, which the openvino backend does not read. Use backend torch."
            )
        begin, end = entry["data_offsets"]
        kind = np.dtype(self._TYPES[entry["dtype"]])
        flat = np.frombuffer(self._map, dtype=kind, count=(end - begin) // kind.itemsize, offset=self._start + begin)
        return flat.reshape(entry["shape"]).astype(np.float32, copy=False)

    def forget(self) -> None:
        """Give back the memory of what was read; the next reader fetches it from the file again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
