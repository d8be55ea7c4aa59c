"""Models of somebody else for pictures and speech: a chat endpoint that takes images, a transcription endpoint; both OpenAI-shaped."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from config.errors import PermanentProviderError, TransientProviderError
from config.http import fetch, open_client, retry_after
from kb.providers.base import ModelSpec
from kb.providers.errors import read_error, redact, status_error

MOST_BYTES = 4 * 1024 * 1024
DESCRIBE = (
    "Describe this picture for somebody who searches documents: what it shows, its labels and numbers, and what a chart or diagram says."
    " Plain sentences, at most 150 words, no introduction."
)
MOST_TOKENS = 600


def describe_picture(spec: ModelSpec, picture: bytes, media_type: str, *, prompt: str, seconds: float) -> str:
    """What a vision model says of a picture. Raises ProviderError and its kin."""
    url = f"data:{media_type};base64,{base64.b64encode(picture).decode('ascii')}"
    content = [{"type": "text", "text": prompt or DESCRIBE}, {"type": "image_url", "image_url": {"url": url}}]
    body = {"model": spec.model, "messages": [{"role": "user", "content": content}], "max_tokens": MOST_TOKENS}
    answer = _post(spec, "chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}, seconds=seconds)
    try:
        said = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        said = None
    if not isinstance(said, str):
        raise _unreadable(spec, "a chat completion")
    return said.strip()


def transcribe(spec: ModelSpec, sound: bytes, *, language: str, prompt: str, seconds: float) -> Mapping[str, Any]:
    """What a service heard in a WAV file: `text`, and where it tells them `segments` with start and end. Raises ProviderError."""
    fields = {"model": spec.model, "response_format": "verbose_json", "language": language, "prompt": prompt}
    with open_client(trusted=spec.trusted, timeout=seconds) as client:
        data = {name: value for name, value in fields.items() if value}
        made = client.build_request("POST", _url(spec, "audio/transcriptions"), data=data, files={"file": ("part.wav", sound, "audio/wav")})
        content = made.read()
    answer = _post(spec, "audio/transcriptions", content, {"Content-Type": made.headers["Content-Type"]}, seconds=seconds)
    if not isinstance(answer.get("text"), str):
        raise _unreadable(spec, "a transcription")
    return answer


def _post(spec: ModelSpec, path: str, content: bytes, headers: dict[str, str], *, seconds: float) -> dict[str, Any]:
    if spec.credential:
        headers["Authorization"] = f"Bearer {spec.credential}"
    with open_client(trusted=spec.trusted, timeout=seconds) as client:
        answer = fetch(
            client, "POST", _url(spec, path), max_bytes=MOST_BYTES, deadline=seconds, headers=headers, content=content, max_redirects=0
        )
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        body = None
    if answer.status >= 300:
        code, detail = read_error(body)
        raise status_error(spec, answer.status, code=code, detail=detail, retry_after=retry_after(answer.headers))
    if not isinstance(body, dict):
        raise TransientProviderError(f"The server of the model {spec.name} answers with something else than JSON. It is tried again.")
    return body


def _url(spec: ModelSpec, path: str) -> str:
    base = (spec.endpoint or "").rstrip("/")
    return base if base.endswith(path) else f"{base}/{path}"


def _unreadable(spec: ModelSpec, what: str) -> PermanentProviderError:
    return PermanentProviderError(redact(spec, f"The server of the model {spec.name} does not answer with {what}. Check the endpoint."))
