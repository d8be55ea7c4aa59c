"""Errors as problem details (RFC 9457): the handler of the REST framework, and of what Django itself refuses under /api/ and /v1/."""

import logging
import sys
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.utils.html import escape
from django.views import defaults
from psycopg_pool import PoolTimeout
from pydantic import ValidationError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from rest_framework import exceptions as drf
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import set_rollback

from config.body import invalid
from config.errors import Forbidden, InvalidInput, LecternError, NotAuthenticated, NotFound, TooLarge, TooManyRequests, Unavailable
from config.limits import DISK_FULL, is_disk_full

log = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
_API = ("/api/", "/v1/")
_MEMBERS = frozenset({"type", "title", "status", "detail", "code"})
_CODES = {405: "method_not_allowed", 406: "not_acceptable", 415: "unsupported_media_type"}


def problem(error: LecternError) -> dict[str, Any]:
    """The document of an error. It holds nothing of the request, so that a foreign and an absent thing look the same."""
    extra = {key: value for key, value in error.extra.items() if key not in _MEMBERS and value is not None}
    return _document(error.status, error.code, error.message) | extra


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """The REST framework's EXCEPTION_HANDLER. What is not known is left to Django: logged with its traceback, answered by `handler500`."""
    mapped = translate(error)
    if mapped is None:
        document = _other(error)
        if document is None:
            return None
        headers: dict[str, str] = {}
    else:
        document, headers = problem(mapped), _headers(mapped)
        if mapped.status >= 500:
            log.warning("%s: %s", mapped.code, mapped.message, exc_info=error if mapped is not error else error.__cause__)
    set_rollback()
    return Response(document, status=document["status"], headers=headers, content_type=CONTENT_TYPE)


def translate(error: BaseException | None) -> LecternError | None:
    """Errors of the libraries in front of and below us, as ours; None for those that nobody expected."""
    match error:
        case LecternError():
            return error
        case ValidationError():
            return invalid(error)
        case drf.ValidationError() | DjangoValidationError():
            return _listed(error)
        case drf.ParseError():
            return InvalidInput(str(error.detail))
        case drf.NotAuthenticated() | drf.AuthenticationFailed():
            return NotAuthenticated(_sentence(error) or "Send a valid API key as `Authorization: Bearer …`.")
        case drf.PermissionDenied() | PermissionDenied():
            return Forbidden(_sentence(error) or "You can see this but may not do that. Ask an administrator of the organization.")
        case drf.NotFound() | Http404():
            return NotFound()
        case drf.Throttled():
            wait = error.wait or 1
            return TooManyRequests(f"Too many requests. Try again in {wait:.0f} seconds.", retry_after=wait)
        case RequestDataTooBig():
            return TooLarge("The body is larger than is taken here. Send less, or use an upload.")
        case SuspiciousOperation() | UnreadablePostError():
            return InvalidInput("The request cannot be read. Correct its form and send it again.")
        case OperationalError() | InterfaceError() | PoolTimeout():
            return Unavailable("The database does not answer or has no free connection. Try again in a moment.", retry_after=2)
        case OSError() if is_disk_full(error):
            return Unavailable(DISK_FULL, retry_after=60)
        case RedisConnectionError() | RedisTimeoutError():
            return Unavailable("Redis does not answer. Try again in a moment.", retry_after=2)
    return None


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not _is_api(request):
        return defaults.bad_request(request, exception)
    return _respond(translate(exception) or InvalidInput("The request cannot be read. Correct its form and send it again."))


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _respond(Forbidden("This may not be done.")) if _is_api(request) else defaults.permission_denied(request, exception)


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    """An unknown route answers with the bytes of an absent thing."""
    return _respond(NotFound()) if _is_api(request) else defaults.page_not_found(request, exception)


def handler500(request: HttpRequest) -> HttpResponse:
    """The traceback is in the log and never in the answer. A service that is away is told, also to a browser."""
    mapped = translate(sys.exc_info()[1])
    away = mapped if isinstance(mapped, Unavailable) else None
    if _is_api(request):
        unknown = "Something went wrong here; the log of the server says what. Try again, or tell the operator."
        return _respond(away or LecternError(unknown))
    return _page(away) if away else defaults.server_error(request)


def _page(error: LecternError) -> HttpResponse:
    """A plain page: what makes the others needs the database."""
    title = escape(HTTPStatus(error.status).phrase)
    body = f"<!doctype html><html lang=en><title>{title}</title><h1>{title}</h1><p>{escape(error.message)}</p></html>"
    return HttpResponse(body, status=error.status, headers=_headers(error))


def _respond(error: LecternError) -> HttpResponse:
    # Rendered by the REST framework's rules, so that both ways give the same bytes.
    content = JSONRenderer().render(problem(error))
    return HttpResponse(content, status=error.status, headers=_headers(error), content_type=CONTENT_TYPE)


def _document(status: int, code: str, detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "code": code, "detail": detail}


def _headers(error: LecternError) -> dict[str, str]:
    headers = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="lectern"'
    if isinstance(error.extra.get("retry_after"), (int, float)):
        headers["Retry-After"] = str(max(1, round(error.extra["retry_after"])))
    return headers


def _other(error: Exception) -> dict[str, Any] | None:
    """Statuses of the REST framework that have no class of ours."""
    if not isinstance(error, drf.APIException) or error.status_code >= 500:
        return None
    detail = str(error.detail) if isinstance(error.detail, str) else "The request is not accepted in this form."
    return _document(error.status_code, _CODES.get(error.status_code, "invalid_input"), detail)


def _sentence(error: Exception) -> str:
    """The text that a raiser gave; the libraries' own defaults say what happened but not what to do."""
    detail = getattr(error, "detail", None)
    default = getattr(error, "default_detail", None)
    text = str(detail if detail is not None else error)
    return "" if default is not None and text == str(default) else text


def _listed(error: drf.ValidationError | DjangoValidationError) -> InvalidInput:
    if isinstance(error, DjangoValidationError):
        detail: Any = error.message_dict if hasattr(error, "error_dict") else error.messages
    else:
        detail = error.detail
    found = list(_flat(detail, ""))
    first = found[0] if found else {"path": "", "message": "the request is not valid"}
    where = f" at {first['path']}" if first["path"] else ""
    return InvalidInput(f"The request is not valid{where}: {first['message']}", errors=found)


def _flat(detail: Any, path: str) -> Any:
    if isinstance(detail, dict):
        for key, item in detail.items():
            own = "" if key in ("non_field_errors", "__all__") else str(key)
            yield from _flat(item, f"{path}.{own}" if path and own else path or own)
    elif isinstance(detail, (list, tuple)):
        for index, item in enumerate(detail):
            nested = isinstance(item, (dict, list))
            yield from _flat(item, f"{path}[{index}]" if nested else path)
    else:
        yield {"path": path, "message": str(detail)}


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(_API)
