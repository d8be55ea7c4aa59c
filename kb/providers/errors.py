"""What a model server's refusals mean: the one place that decides whether trying again may help, and what a message says.

Takes plain values, so that it serves every provider; a message never holds the credential.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from config.errors import LecternError, PermanentProviderError, ProviderError, TransientProviderError
from config.http_errors import RETRYABLE, map_error, shown
from kb.providers.base import ModelSpec

_QUOTA_CODES = ("quota", "billing", "credit", "spend_limit", "usage_limit")
_LONGEST_DETAIL = 300
_OF_LENGTH = (
    "context length",
    "input length",
    "input tokens",
    "too many tokens",
    "token limit",
    "token count",
    "too long",
    "sequence length",
)


def status_error(
    spec: ModelSpec, status: int, *, code: str | None = None, detail: str = "", retry_after: float | None = None
) -> ProviderError:
    """An answer of 300 and above. `code` is the server's own error code or type."""
    said = _quote(spec, detail)
    if status == 402 or (status == 429 and any(word in (code or "").lower() for word in _QUOTA_CODES)):
        return _permanent(spec, status, f"says that the account's quota or credit is used up{said} Top it up, or use another key.")
    if status == 429:
        return _transient(spec, status, f"limits the rate of requests{said} It is tried again; a larger plan helps.", retry_after)
    if status in RETRYABLE or status >= 500:
        return _transient(spec, status, f"answered {status}{said} It is tried again; if it stays so, check the server.", retry_after)
    if status in (401, 403):
        return _permanent(spec, status, f"refuses the credential ({status}){said} Correct the model's secret, or ask for access to it.")
    if status == 404:
        return _permanent(spec, status, f"knows no such model or path{said} Check the model name {spec.model!r} and the endpoint.")
    if status == 413 or _speaks_of_length(code, detail):
        return _permanent(spec, status, f"finds the request too long ({status}){said} Lower max_input_tokens, or parameters.batch_texts.")
    if status < 400:
        return _permanent(spec, status, f"answers with a redirect ({status}). Name the final address as the endpoint.")
    return _permanent(spec, status, f"rejects the request ({status}){said} Check the model's parameters.")


def connection_error(spec: ModelSpec, error: BaseException) -> LecternError:
    """No answer at all; `error` is the library's, whose causes tell a refused address or a bad certificate from a server that is down."""
    for cause in _causes(error):
        if isinstance(cause, LecternError):
            return cause
        if isinstance(cause, Exception) and type(cause).__module__.partition(".")[0] in ("httpx", "httpx2"):
            return map_error(cause, spec.endpoint or "")
    return _transient(spec, None, f"cannot be reached{_quote(spec, str(error))} It is tried again; check that the server is up.", None)


def timeout_error(spec: ModelSpec) -> ProviderError:
    return _transient(spec, None, "did not answer in time. It is tried again; raise parameters.timeout if it is only slow.", None)


def unreadable_answer(spec: ModelSpec, detail: str, *, transient: bool = False) -> ProviderError:
    text = f"does not answer in the form of an embeddings endpoint: {redact(spec, detail)}. Check the endpoint; it usually ends in /v1."
    return _transient(spec, None, text, None) if transient else _permanent(spec, None, text)


def redact(spec: ModelSpec, text: str) -> str:
    """Without the credential, should the server have repeated it, on one line and of bounded length."""
    text = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    if spec.credential:
        text = text.replace(spec.credential, "[secret]")
    return text[:_LONGEST_DETAIL]


def _quote(spec: ModelSpec, detail: str) -> str:
    detail = redact(spec, detail).rstrip(". ")
    return f" (“{detail}”)." if detail else "."


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__


def _speaks_of_length(code: str | None, detail: str) -> bool:
    text = detail.lower()
    return code == "context_length_exceeded" or any(words in text for words in _OF_LENGTH)


def read_error(body: object) -> tuple[str | None, str]:
    """(code, message) of a refusal in any of the shapes that vendors use: `{"error": {"message", "code"}}`, `{"error": "…"}`,
    `{"message": "…"}`, `{"detail": "…"}` or `{"detail": [{"msg": "…"}]}`, a list of one of them, or plain text."""
    while isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return None, body if isinstance(body, str) else ""
    inner = body.get("error", body)
    if not isinstance(inner, dict):
        return None, str(inner or "")
    said = inner.get("message") or inner.get("detail") or inner.get("msg") or ""
    code = next((str(inner[name]) for name in ("status", "code", "type") if inner.get(name) and not isinstance(inner[name], int)), None)
    return code, said if isinstance(said, str) else read_error(said)[1]


def _transient(spec: ModelSpec, status: int | None, text: str, retry_after: float | None) -> ProviderError:
    return TransientProviderError(f"{_who(spec)} {text}", retry_after=retry_after, **_extra(status))


def _permanent(spec: ModelSpec, status: int | None, text: str) -> ProviderError:
    return PermanentProviderError(f"{_who(spec)} {text}", **_extra(status))


def _who(spec: ModelSpec) -> str:
    return f"The server of the model {spec.name}" + (f" at {shown(spec.endpoint)}" if spec.endpoint else "")


def _extra(status: int | None) -> dict[str, Any]:
    return {} if status is None else {"upstream_status": status}
