"""The `bedrock` provider: InvokeModel of Amazon Bedrock, signed by botocore and sent through the guarded HTTP client.

The credential is `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, with `:SESSION_TOKEN` for temporary ones, or a Bedrock API key. Without one, an
operator's model is who this server is to AWS (environment, files, roles).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

from config.errors import InvalidInput, PermanentProviderError
from config.http import Fetched
from kb.providers.base import BatchLimits, ModelSpec, Role
from kb.providers.bedrock_models import family_of
from kb.providers.remote import Call, RemoteProvider

_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}")  # it becomes part of a host name
_DEFAULT_REGION = "us-east-1"


class BedrockProvider(RemoteProvider):
    def __init__(self, spec: ModelSpec, *, threads: int | None = None) -> None:
        super().__init__(spec, threads=threads)
        self._family = family_of(spec)
        if not self._family.several:
            self.limits = BatchLimits(max_texts=1, max_tokens=self.limits.max_tokens)

    @classmethod
    def check(cls, spec: ModelSpec) -> None:
        super().check(spec)
        family_of(spec)
        region = spec.parameters.get("region", _DEFAULT_REGION)
        if not isinstance(region, str) or not _REGION.fullmatch(region):
            raise InvalidInput(f"The parameter region of the model {spec.name} is {region!r}. Give one like {_DEFAULT_REGION}.")
        if not spec.trusted and not spec.credential:
            raise InvalidInput(
                f"The model {spec.name} names no credential. Store ACCESS_KEY_ID:SECRET_ACCESS_KEY or a Bedrock API key as a secret and "
                "name it: the identity of this server is only for models that an operator registers."
            )
        if ":" in (spec.credential or ":") and find_spec("botocore") is None:
            raise InvalidInput(
                "The provider bedrock needs the package botocore. Install it with: pip install --require-hashes -r requirements/s3.txt"
            )

    def make_call(self, texts: Sequence[str], role: Role) -> Call:
        body = self._family.request(texts, role, self._spec.parameters.get("dimensions"))
        return Call(f"{self._host}/model/{quote(self._spec.model, safe='')}/invoke", body, {"Accept": "application/json"})

    def read_answer(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[list[Any], Any]:
        counted = headers.get("x-amzn-bedrock-input-token-count", "")
        return self._family.vectors(body), int(counted) if counted.isdigit() else body.get("inputTextTokenCount")

    def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> Fetched:
        return super().post(url, content, self._signed(url, content, headers))

    def _signed(self, url: str, content: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        if self._spec.credential and ":" not in self._spec.credential:
            return {**headers, **self.bearer()}
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError

        request = AWSRequest(method="POST", url=url, data=content, headers=dict(headers))
        try:
            SigV4Auth(self._credentials.get_frozen_credentials(), "bedrock", self._region).add_auth(request)
        except BotoCoreError as error:
            raise PermanentProviderError(
                f"This server cannot sign for AWS ({error}). Give the model {self._spec.name} a credential."
            ) from None
        return dict(request.headers)

    @cached_property
    def _credentials(self) -> Any:
        from botocore.credentials import Credentials
        from botocore.session import Session

        if self._spec.credential:
            key, _, rest = self._spec.credential.strip().partition(":")
            secret, _, token = rest.partition(":")
            return Credentials(key, secret, token or None)
        found = Session().get_credentials()
        if found is None:
            raise PermanentProviderError(f"This server has no identity at AWS. Give the model {self._spec.name} a credential.")
        return found

    @property
    def _region(self) -> str:
        return self._spec.parameters.get("region", _DEFAULT_REGION)

    @property
    def _host(self) -> str:
        suffix = "amazonaws.com.cn" if self._region.startswith("cn-") else "amazonaws.com"
        return self.base or f"https://bedrock-runtime.{self._region}.{suffix}"
