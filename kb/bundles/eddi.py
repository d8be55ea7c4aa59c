"""Knowledge bases of EDDI (`{id}.rag.json`) as documents of ours. What has another meaning here is converted, what has none is left out,
and either is told."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from kb.bundles.base import Note
from kb.schemas.chunking import AUTO_TARGET
from kb.schemas.diff import masked
from kb.schemas.parameters import snake
from kb.schemas.source import Source, SourceSettings, Upload
from kb.schemas.store import STORE_PARAMETERS
from kb.schemas.web import Web

GRPC_PORT, REST_PORT = 6334, 6333  # of Qdrant
CHARACTERS_PER_TOKEN = 4
_TOP = {
    "embeddingProvider",
    "embeddingParameters",
    "storeType",
    "storeParameters",
    "storeNamespace",
    "chunkStrategy",
    "chunkSize",
    "chunkOverlap",
    "maxResults",
    "minScore",
}
_OURS = {"schema", "embedding_model", "store", "chunking", "retrieval", "visibility", "language"}
_DEFAULT_MODELS = {
    "openai": "text-embedding-3-small",
    "ollama": "nomic-embed-text",
    "mistral": "mistral-embed",
    "bedrock": "amazon.titan-embed-text-v2:0",
    "cohere": "embed-english-v3.0",
    "gemini": "gemini-embedding-2",
    "vertex": "text-embedding-005",
}
_STORES = {"in-memory": "pgvector"}
_BLOCKS = {"web": Web, "upload": Upload, "settings": SourceSettings}
_VAULT = re.compile(r"\$\{(?:eddi)?vault:(?:[^}]*/)?([A-Za-z_][A-Za-z0-9_.-]{0,99})\}")
_AGENT = "EDDI-Crawler/"


def is_eddi(document: Mapping[str, Any]) -> bool:
    """Whether a document is written in EDDI's keys; one of ours with a slip is not, and its validation names the slip."""
    if document.keys() & _OURS:
        return False
    sources = document.get("sources")
    blocks = [source.get("web") for source in sources if isinstance(source, dict)] if isinstance(sources, list) else []
    return bool(document.keys() & _TOP) or any(isinstance(web, dict) and "startUrl" in web for web in blocks)


def map_knowledge_base(document: Mapping[str, Any], *, known_stores: Collection[str]) -> tuple[dict[str, Any], list[Note]]:
    """Our document, not validated yet, and what was converted or left out."""
    mapping = _Mapping(known_stores)
    return mapping.knowledge_base(_present(document)), mapping.notes


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without nulls, which say that a default holds."""
    return {key: value for key, value in values.items() if value is not None}


@dataclass
class _Mapping:
    known_stores: Collection[str]
    notes: list[Note] = field(default_factory=list)

    def knowledge_base(self, values: dict[str, Any]) -> dict[str, Any]:
        made = {key: values.pop(key) for key in ("name", "description") if key in values}
        if model := self._model(values):
            made["embedding_model"] = model
        if store := self._store(values):
            made["store"] = store
        if chunking := self._chunking(values):
            made["chunking"] = chunking
        if retrieval := self._retrieval(values):
            made["retrieval"] = retrieval
        sources = values.pop("sources", [])
        made["sources"] = [self._source(entry) for entry in sources] if isinstance(sources, list) else sources
        for key, value in values.items():
            self._left_out(key, value)
        return made

    def _left_out(self, path: str, value: Any, why: str = "has no counterpart here and was left out.") -> None:
        self.notes.append(Note(path, why, old=masked(path.rpartition(".")[2], value)))

    def _converted(self, path: str, old: Any, new: Any, why: str) -> None:
        self.notes.append(Note(path, why, old=masked(path.rpartition(".")[2], old), new=new))

    def _model(self, values: dict[str, Any]) -> str | None:
        provider, parameters = values.pop("embeddingProvider", None), values.pop("embeddingParameters", {})
        if not isinstance(parameters, dict):
            parameters = {}
        model = parameters.get("model") or parameters.get("modelName") or parameters.get("deploymentName")
        for key, value in _present(parameters).items():
            if key not in ("model", "modelName", "deploymentName"):
                self._left_out(f"embeddingParameters.{key}", value, "belongs to the registered embedding model here and was left out.")
        if provider is None and model is None:
            return None
        provider = provider or "openai"
        wanted = f"{provider}/{model or _DEFAULT_MODELS.get(str(provider), '')}".rstrip("/")
        self._converted("embeddingProvider", provider, wanted, "became the name of an embedding model, which has to be registered here.")
        return wanted

    def _store(self, values: dict[str, Any]) -> dict[str, Any] | None:
        kind, parameters = values.pop("storeType", None), values.pop("storeParameters", {})
        kept = _STORES.get(kind, kind) if isinstance(kind, str) else None
        if kind is not None and kept not in self.known_stores:
            kept = "pgvector"
        if kind is not None and kept != kind:
            self._converted("storeType", kind, kept, "is not a store of this installation; vectors live in its own Postgres instead.")
        taken: dict[str, Any] = {}
        for key, value in _present(parameters if isinstance(parameters, dict) else {}).items():
            if kept is None or snake(key) not in STORE_PARAMETERS.get(kept, ()):
                self._left_out(f"storeParameters.{key}", value)
                continue
            taken[snake(key)] = self._stored(f"storeParameters.{key}", snake(key), value)
        return {"type": kept, "parameters": taken} if kept else None

    def _stored(self, path: str, key: str, value: Any) -> Any:
        """Parameters are texts there, and Qdrant is spoken to by gRPC."""
        if key == "use_tls" and value in ("true", "false"):
            return value == "true"
        if key == "port" and str(value).isascii() and str(value).isdigit():
            port = int(value)
            if port == GRPC_PORT:
                self._converted(path, port, REST_PORT, "is Qdrant's port for gRPC; its REST interface is used here.")
                return REST_PORT
            return port
        return self._reference(path, value)

    def _reference(self, path: str, value: Any) -> Any:
        match = _VAULT.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return value
        reference = f"${{secret:{match[1]}}}"
        self.notes.append(Note(path, "refers to a secret, which has to be stored here under that name.", old=value, new=reference))
        return reference

    def _chunking(self, values: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        strategy = values.pop("chunkStrategy", None)
        if strategy is not None:
            made["strategy"] = "recursive"
            if strategy != "recursive":
                self._converted("chunkStrategy", strategy, "recursive", "never cut in another way there.")
        size, overlap = values.pop("chunkSize", None), values.pop("chunkOverlap", None)
        if _is_number(size):
            made["target_tokens"] = min(max(round(size / CHARACTERS_PER_TOKEN), 32), 8000)
            self._converted("chunkSize", size, made["target_tokens"], f"is in tokens here, about {CHARACTERS_PER_TOKEN} characters each.")
        elif size is not None:
            self._left_out("chunkSize", size, "is not a number of characters and was left out.")
        if _is_number(overlap):
            whole = size if _is_number(size) else AUTO_TARGET * CHARACTERS_PER_TOKEN
            made["overlap"] = min(round(overlap / whole, 4), 0.5)
            self._converted("chunkOverlap", overlap, made["overlap"], "is a share of the chunk here, at most one half.")
        elif overlap is not None:
            self._left_out("chunkOverlap", overlap, "is not a number of characters and was left out.")
        return made

    def _retrieval(self, values: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if "maxResults" in values:
            made["max_results"] = values.pop("maxResults")
        score = values.pop("minScore", None)
        if isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1:
            # There a score is (cosine + 1) / 2: 0.5 is what two unrelated texts have.
            cosine = round(max(0.0, 2 * score - 1), 4)
            made["min_score"] = {"vector": cosine}
            self._converted("minScore", score, cosine, "is the cosine itself here, and was (cosine + 1) / 2.")
        elif score is not None:
            self._left_out("minScore", score, "is not a number from 0 to 1 and was left out.")
        return made

    def _source(self, entry: Any) -> Any:
        if not isinstance(entry, dict):
            return entry
        path = f"sources[{entry.get('name')}]"
        values = _present(entry)
        values.pop("id", None)  # sources get new ids
        made = self._renamed(values, Source, path)
        for block, kind in _BLOCKS.items():
            if isinstance(made.get(block), dict):
                made[block] = self._renamed(_present(made[block]), kind, f"{path}.{block}")
        web = made.get("web")
        if isinstance(web, dict) and str(web.get("user_agent", "")).startswith(_AGENT):
            self._left_out(f"{path}.web.userAgent", web.pop("user_agent"), "names another crawler; ours says its own name.")
        if made.get("type") == "upload" and "web" in made:
            self._left_out(f"{path}.web", made.pop("web"), "does not belong to an upload source and was left out.")
        elif made.get("type", "web") == "web" and "upload" in made:
            self._left_out(f"{path}.upload", made.pop("upload"), "does not belong to a web source and was left out.")
        return made

    def _renamed(self, values: dict[str, Any], kind: Any, path: str) -> dict[str, Any]:
        made = {}
        for key, value in values.items():
            if snake(key) in kind.model_fields:
                made[snake(key)] = value
            else:
                self._left_out(f"{path}.{key}", value)
        return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 10**9
