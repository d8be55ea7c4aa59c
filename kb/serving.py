"""Whom a request serves: nobody, until its authentication says so, and nobody after it."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

from config.tenancy import everyone, nobody, serve, serve_everyone
from kb.models import Membership


class Serving:
    """The API's authentication serves the organization of its actor; pages of the admin serve those that the person is a member of, and
    everyone for an operator."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._later(request)
        with nobody():
            return self.get_response(request)

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        with nobody():
            return await self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> None:
        if request.resolver_match.app_name != "admin" or not (request.user.is_active and request.user.is_staff):
            return
        if request.user.is_superuser:
            serve_everyone()
        else:
            with everyone():
                ids = list(Membership.objects.filter(user_id=request.user.pk).values_list("organization_id", flat=True))
            serve(*ids)
