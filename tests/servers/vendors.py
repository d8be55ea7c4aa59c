"""The wire formats of the vendors of embeddings, for `vendor_server`: what a request must look like, and what is answered.

Each is strict where the vendor is: another path, header or field is refused as the vendor refuses it. The vendors' own clients were once
run against them, and read the answers: cohere 7.3.1, voyageai 0.5.0, google-genai 2.34.0, boto3 1.44.8, openai 3.57.0, mistralai 3.7.0,
ollama 0.6.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

KEY = "a-key-of-the-tests"
BEDROCK_KEYS = ("AKIDOFTHETESTS", "a/secret+key")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for, whatever its form. `role` is what the wire says of the texts ("" where it says nothing)."""

    model: str
    texts: list[str]
    role: str = ""
    dimension: int | None = None


class Refused(Exception):
    """The vendor refuses the request for its form."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Vendor:
    """`path` of the endpoint below the server; `read` takes (path, headers, body); `write` (vectors, tokens, asked) answers; `error`
    (status, message) refuses."""

    path: str
    model: str
    read: Callable[[str, Mapping[str, str], dict[str, Any]], Asked]
    write: Callable[[list[list[float]], int, Asked], Any]
    error: Callable[[int, str], Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    credential: str = KEY
    roles: tuple[str, str] = ("", "")  # of documents and of questions, on the wire
    dimensions: bool = True
    has_index: bool = False
    several: bool = True
    headers: Callable[[int], dict[str, str]] = lambda tokens: {}
    verify: Callable[[str, Mapping[str, str], bytes], None] = lambda path, headers, content: None


def take(body: Mapping[str, Any], *required: str, optional: tuple[str, ...] = ()) -> list[Any]:
    missing = [name for name in required if name not in body]
    unknown = sorted(set(body) - {*required, *optional})
    if missing or unknown:
        raise Refused(400, f"missing {missing}, unknown {unknown}")
    return [body[name] for name in required]


def demand(holds: bool, message: str, status: int = 400) -> None:
    if not holds:
        raise Refused(status, message)


def bearer(headers: Mapping[str, str]) -> None:
    demand(headers.get("authorization") == f"Bearer {KEY}", "no such key", 401)


def at(path: str, expected: str) -> None:
    demand(path == expected, f"no path {path}", 404)


def read_azure(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Asked:
    at(path, "/openai/deployments/embeddings-of-ours/embeddings?api-version=2024-10-21")
    demand(headers.get("api-key") == KEY and "authorization" not in headers, "Access denied due to invalid subscription key", 401)
    model, texts = take(body, "model", "input", optional=("encoding_format", "dimensions"))
    demand(body.get("encoding_format") == "base64", "encoding_format")
    return Asked(model, texts, dimension=body.get("dimensions"))


def write_openai(vectors: list[list[float]], tokens: int, asked: Asked) -> Any:
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0}
    return {"id": "0a1b2c", "object": "list", "model": asked.model, "data": data, "usage": usage}


def read_openai(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Asked:
    at(path, "/v1/embeddings")
    bearer(headers)
    model, texts = take(body, "model", "input", optional=("encoding_format", "dimensions"))
    return Asked(model, texts, dimension=body.get("dimensions"))


def read_mistral(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Asked:
    at(path, "/v1/embeddings")
    bearer(headers)
    model, texts, form = take(body, "model", "input", "encoding_format", optional=("output_dimension",))
    demand(form == "float", "encoding_format")
    return Asked(model, texts, dimension=body.get("output_dimension"))


def read_ollama(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Asked:
    at(path, "/api/embed")
    model, texts, truncate = take(body, "model", "input", "truncate", optional=("dimensions", "keep_alive", "options"))
    demand(truncate is False, "truncate")
    return Asked(model, texts, dimension=body.get("dimensions"))


def write_ollama(vectors: list[list[float]], tokens: int, asked: Asked) -> Any:
    times = {"total_duration": 14_143_917, "load_duration": 1_019_500}
    return {"model": asked.model, "embeddings": vectors, **times, "prompt_eval_count": tokens}


def read_cohere(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Asked:
    at(path, "/v2/embed")
    bearer(headers)
    model, texts, role, kinds, truncate = take(
        body, "model", "texts", "input_type", "embedding_types", "truncate", optional=("output_dimension",)
    )
    demand(kinds == ["float"] and truncate == "NONE", "embedding_types and truncate")
    demand(len(texts) <= 96, "invalid request: total number of texts must be at most 96")
    return Asked(model, texts, role, body.get("output_dimension"))


def write_cohere(vectors: list[list[float]], tokens: int, asked: Asked) -> Any:
    meta = {"api_version": {"version": "2"}, "billed_units": {"input_tokens": tokens}}
    return {"id": "3198467e-399f-4d4a-aa2c-58af93bd6dc4", "texts": asked.texts, "embeddings": {"float": vectors}, "meta": meta}


def read_voyage(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Asked:
    at(path, "/v1/embeddings")
    bearer(headers)
    model, texts, role, truncation = take(
        body, "model", "input", "input_type", "truncation", optional=("output_dimension", "output_dtype", "encoding_format")
    )
    demand(truncation is False and role in ("document", "query"), "truncation and input_type")
    demand(len(texts) <= 1000, "The batch size limit is 1000.")
    return Asked(model, texts, role, body.get("output_dimension"))


def write_voyage(vectors: list[list[float]], tokens: int, asked: Asked) -> Any:
    return {**write_openai(vectors, tokens, asked), "usage": {"total_tokens": tokens}}


def read_gemini(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Asked:
    at(path, "/v1beta/models/gemini-embedding-001:batchEmbedContents")
    demand(headers.get("x-goog-api-key") == KEY, "API key not valid. Please pass a valid API key.")
    (requests,) = take(body, "requests")
    demand(len(requests) <= 100, "at most 100 requests can be in one batch")
    asked = [take(request, "model", "content", "taskType", optional=("outputDimensionality",)) for request in requests]
    demand(len({(model, task) for model, _, task in asked}) == 1, "several models or tasks")
    texts = [content["parts"][0]["text"] for _, content, _ in asked]
    return Asked(asked[0][0], texts, asked[0][2], requests[0].get("outputDimensionality"))


def write_gemini(vectors: list[list[float]], tokens: int, asked: Asked) -> Any:
    return {"embeddings": [{"values": vector} for vector in vectors]}


def google_error(status: int, message: str) -> Any:
    details: list[dict[str, Any]] = []
    if "API key not valid" in message:
        details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"})
    names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
    return {"error": {"code": status, "message": message, "status": names.get(status, "INTERNAL"), "details": details}}


def read_vertex(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Asked:
    at(path, "/v1/projects/ours/locations/europe-west4/publishers/google/models/text-embedding-005:predict")
    demand(headers.get("authorization") == "Bearer ya29.of-the-tests", "Request had invalid authentication credentials.", 401)
    instances, parameters = take(body, "instances", "parameters")
    (truncate,) = take(parameters, "autoTruncate", optional=("outputDimensionality",))
    demand(truncate is False and len(instances) <= 250, "autoTruncate and 250 instances")
    asked = [take(instance, "content", "task_type", optional=("title",)) for instance in instances]
    return Asked("text-embedding-005", [text for text, _ in asked], asked[0][1], parameters.get("outputDimensionality"))


def write_vertex(vectors: list[list[float]], tokens: int, asked: Asked) -> Any:
    counts = [tokens - (len(vectors) - 1), *[1] * (len(vectors) - 1)]
    return {
        "predictions": [
            {"embeddings": {"values": vector, "statistics": {"truncated": False, "token_count": count}}}
            for vector, count in zip(vectors, counts, strict=True)
        ],
        "metadata": {"billableCharacterCount": sum(map(len, asked.texts))},
    }


def read_bedrock(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Asked:
    at(unquote(path), "/model/amazon.titan-embed-text-v2:0/invoke")
    pattern = r"AWS4-HMAC-SHA256 Credential=AKIDOFTHETESTS/\d{8}/eu-central-1/bedrock/aws4_request, SignedHeaders=\S+, Signature=\w+"
    demand(bool(re.fullmatch(pattern, headers.get("authorization", ""))), "The security token included in the request is invalid.", 403)
    (text,) = take(body, "inputText", optional=("dimensions", "normalize", "embeddingTypes"))
    return Asked("titan", [text], dimension=body.get("dimensions"))


def verify_bedrock(path: str, headers: Mapping[str, str], content: bytes) -> None:
    """The signature, computed again by botocore over what arrived."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    signed = re.search(r"SignedHeaders=([a-z0-9;-]+)", headers.get("authorization", ""))
    demand(signed is not None, "Missing Authentication Token", 403)
    request = AWSRequest("POST", f"http://{headers['host']}{path}", {name: headers[name] for name in signed[1].split(";")}, content)
    request.context["timestamp"] = headers["x-amz-date"]
    auth = SigV4Auth(Credentials(*BEDROCK_KEYS), "bedrock", "eu-central-1")
    signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    demand(headers["authorization"].endswith(f"Signature={signature}"), "The request signature we calculated does not match.", 403)


def write_bedrock(vectors: list[list[float]], tokens: int, asked: Asked) -> Any:
    return {"embedding": vectors[0], "embeddingsByType": {"float": vectors[0]}, "inputTextTokenCount": tokens} if vectors else {}


def openai_error(status: int, message: str) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", "code": "scripted", "param": None}}


def flat_error(status: int, message: str) -> Any:
    return {"message": message}


VENDORS: dict[str, Vendor] = {
    "openai": Vendor("/v1", "text-embedding-3-small", read_openai, write_openai, openai_error, has_index=True),
    "azure-openai": Vendor(
        "", "text-embedding-3-small", read_azure, write_openai, openai_error, {"deployment_name": "embeddings-of-ours"}, has_index=True
    ),
    "ollama": Vendor("", "nomic-embed-text", read_ollama, write_ollama, lambda status, message: {"error": message}),
    "mistral": Vendor(
        "/v1",
        "codestral-embed",
        read_mistral,
        write_openai,
        lambda status, message: {"object": "error", "message": message, "type": "invalid_request", "param": None, "code": "1210"},
        has_index=True,
    ),
    "bedrock": Vendor(
        "",
        "amazon.titan-embed-text-v2:0",
        read_bedrock,
        write_bedrock,
        flat_error,
        {"region": "eu-central-1"},
        credential=":".join(BEDROCK_KEYS),
        several=False,
        headers=lambda tokens: {"X-Amzn-Bedrock-Input-Token-Count": str(tokens)},
        verify=verify_bedrock,
    ),
    "cohere": Vendor("/v2", "embed-v4.0", read_cohere, write_cohere, flat_error, roles=("search_document", "search_query")),
    "gemini": Vendor(
        "/v1beta", "gemini-embedding-001", read_gemini, write_gemini, google_error, roles=("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")
    ),
    "vertex": Vendor(
        "/v1",
        "text-embedding-005",
        read_vertex,
        write_vertex,
        google_error,
        {"project": "ours", "location": "europe-west4"},
        credential="",  # a service account, made by the test
        roles=("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"),
    ),
    "voyage": Vendor(
        "/v1",
        "voyage-3.5",
        read_voyage,
        write_voyage,
        lambda status, message: {"detail": message},
        roles=("document", "query"),
        has_index=True,
    ),
}
