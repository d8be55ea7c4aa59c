"""Who asks: a bearer key, or a signed-in person. Either way the request's `user` is an `access.Actor`."""

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.request import Request

from config.errors import NotAuthenticated
from config.tenancy import everyone, serve
from kb import services
from kb.access import Actor, actor_for_key, actor_for_user
from kb.models import ApiKey


class BearerKey(BaseAuthentication):
    """`Authorization: Bearer lk_…`. A wrong, expired or revoked key is 401 before anything is looked up."""

    def authenticate(self, request: Request) -> tuple[Actor, ApiKey] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != b"bearer":
            return None
        if len(parts) != 2:
            raise NotAuthenticated("The Authorization header is not 'Bearer <key>'. Send the API key as it was shown.")
        with everyone():
            key = services.use_api_key(parts[1].decode("latin-1"))
            if key is None:
                raise NotAuthenticated("This API key is unknown, expired or revoked. Ask an administrator for a new one.")
            actor = actor_for_key(key)
        serve(actor.organization.id)
        return actor, key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class Session(SessionAuthentication):
    """The admin's session, with CSRF checks; several memberships are told apart by X-Lectern-Organization."""

    def authenticate(self, request: Request) -> tuple[Actor, None] | None:
        found = super().authenticate(request)
        if found is None:
            return None
        with everyone():
            actor = actor_for_user(found[0], request.headers.get("X-Lectern-Organization"))
        serve(actor.organization.id)
        return actor, None


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "kb.api.authentication.BearerKey"
    name = "bearer"

    def get_security_definition(self, auto_schema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "Lectern API key"}


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "kb.api.authentication.Session"
    name = "session"

    def get_security_definition(self, auto_schema) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
