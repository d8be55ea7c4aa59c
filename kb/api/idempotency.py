"""`@idempotent` on a view's `post`: the same Idempotency-Key and body give the first answer again, with `Idempotent-Replayed: true`."""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import transaction
from django.http import HttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.errors import InvalidInput
from kb import idempotency
from kb.idempotency import Answer, Claim

Method = Callable[..., HttpResponse]
MAX_KEY = 255
KEPT_HEADERS = ("Location", "ETag", "Retry-After")
_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


def idempotent(method: Method | None = None, *, atomic: bool = False, digest: Callable[[Request], bytes] | None = None) -> Any:
    """Only 2xx answers are kept; after any other the key is free. Without the header nothing changes. `digest` tells requests apart where
    a body is too large to be read into memory.

    `atomic` runs the view in one transaction with the keeping of its answer, so that a crash leaves both or neither; only for
    views that do nothing slow and need no commit on their way.
    """
    if method is None:
        return lambda decorated: idempotent(decorated, atomic=atomic, digest=digest)

    @wraps(method)
    def answering(view: APIView, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return method(view, request, *args, **kwargs)
        route = f"{request.method} {request.path}"
        claim = idempotency.claim(request.user, key=_checked(key), route=route, body_digest=(digest or body_digest)(request))
        if isinstance(claim, Answer):
            return _replay(claim)
        try:
            if not atomic:
                return _answer(claim, method(view, request, *args, **kwargs))
            with transaction.atomic():
                return _answer(claim, method(view, request, *args, **kwargs))
        except BaseException:
            claim.release()
            raise

    return answering


def body_digest(request: Request) -> bytes:
    """Of the query and the body; a form by its fields and files, because its boundary differs each time."""
    state = hashlib.sha256(request.META.get("QUERY_STRING", "").encode())
    content_type = (request.content_type or "").partition(";")[0].strip().lower()
    if content_type not in _FORMS:
        state.update(b"\0" + request.body)
        return state.digest()
    for name in sorted(request.POST):
        state.update(repr((name, request.POST.getlist(name))).encode("utf-8", "surrogatepass"))
    for name in sorted(request.FILES):
        for file in request.FILES.getlist(name):
            state.update(repr((name, file.name, file.size, file.content_type)).encode("utf-8", "surrogatepass"))
            for part in file.chunks():
                state.update(part)
            file.seek(0)
    return state.digest()


def _answer(claim: Claim, response: HttpResponse) -> HttpResponse:
    if not 200 <= response.status_code < 300:
        claim.release()
        return response
    body = JSONRenderer().render(response.data).decode() if isinstance(response, Response) else response.content.decode()
    headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    claim.keep(Answer(response.status_code, body, headers))
    return response


def _replay(answer: Answer) -> HttpResponse:
    headers = {**answer.headers, "Idempotent-Replayed": "true"}
    return HttpResponse(answer.body.encode(), status=answer.status, headers=headers, content_type="application/json")


def _checked(key: str) -> str:
    if not (1 <= len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise InvalidInput(f"Idempotency-Key must be 1 to {MAX_KEY} printable ASCII characters. A UUID does well.")
    return key
