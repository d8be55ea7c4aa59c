"""Access tokens of Google Cloud, by google-auth; every request that it makes goes through the guarded HTTP client."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any

from config.errors import InvalidInput, LecternError, PermanentProviderError, TransientProviderError
from config.http import fetch, open_client
from kb.providers.base import ModelSpec
from kb.providers.errors import redact
from kb.providers.remote_settings import timeout_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_MOST_BYTES = 1024 * 1024


def check_identity(spec: ModelSpec) -> None:
    """Who a model of an organization is must be its own secret: the identity of this server is the installation's."""
    if find_spec("google") is None or find_spec("google.auth") is None:
        install = "pip install --require-hashes -r requirements/google.txt"
        raise InvalidInput(f"The provider {spec.provider} needs the package google-auth. Install it with: {install}")
    if not spec.trusted and not spec.credential:
        raise InvalidInput(
            f"The model {spec.name} names no credential. Store the JSON key of a service account as a secret and name it: the identity of "
            "this server is only for models that an operator registers."
        )
    if spec.credential:
        _service_account(spec)


class Identity:
    """The service account of the model's credential, else what this server is to Google (application default credentials)."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._lock = Lock()
        self._credentials: Any = None

    def token(self) -> str:
        """A token that is valid for some minutes; asked for again when it runs out. Raises ProviderError."""
        from google.auth import exceptions

        with self._lock:
            try:
                if self._credentials is None:
                    self._credentials = self._load()
                if not self._credentials.valid:
                    self._credentials.refresh(self._request)
            except exceptions.TransportError as error:
                raise self._failed(TransientProviderError, error) from None
            except (exceptions.GoogleAuthError, ValueError) as error:
                kind = TransientProviderError if getattr(error, "retryable", False) else PermanentProviderError
                raise self._failed(kind, error) from None
            return str(self._credentials.token)

    def forget(self) -> None:
        """Ask for a new token next time."""
        with self._lock:
            self._credentials = None

    def _load(self) -> Any:
        import google.auth
        from google.oauth2 import service_account

        if self._spec.credential:
            return service_account.Credentials.from_service_account_info(_service_account(self._spec), scopes=_SCOPES)
        return google.auth.default(scopes=_SCOPES, request=self._request)[0]

    def _request(self, url: str, method: str = "GET", body: Any = None, headers: Any = None, timeout: Any = None, **_: Any) -> _Response:
        """What google-auth calls a transport."""
        from google.auth import exceptions

        deadline = min(timeout or 30.0, timeout_of(self._spec))
        content = body.encode() if isinstance(body, str) else body
        try:
            with open_client(trusted=self._spec.trusted, timeout=deadline) as client:
                answer = fetch(
                    client, method, url, max_bytes=_MOST_BYTES, deadline=deadline, headers=headers, content=content, max_redirects=0
                )
        except TransientProviderError as error:
            raise exceptions.TransportError(error.message) from None
        return _Response(answer.status, answer.headers, answer.body)

    def _failed(self, kind: type[LecternError], error: Exception) -> LecternError:
        said = redact(self._spec, str(error.args[0] if error.args else error))
        return kind(f"Google gives no access token for the model {self._spec.name} ({said}). Check its credential and that it may be used.")


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    headers: Mapping[str, str]
    data: bytes


def _service_account(spec: ModelSpec) -> dict[str, Any]:
    try:
        found = json.loads(spec.credential or "")
    except ValueError:
        found = None
    # Other kinds may name files, programs and addresses to take a token from.
    if not isinstance(found, dict) or found.get("type") != "service_account":
        raise InvalidInput(
            f"The credential of the model {spec.name} is no JSON key of a service account. Store the whole file as the secret."
        )
    return found
