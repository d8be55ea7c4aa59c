"""The web process: a small dispatcher in front of Django, so that other ASGI applications can stand beside it."""

import os
from importlib import import_module

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.conf import settings
from django.core.asgi import get_asgi_application

from config.limits import BodyLimit

django_application = BodyLimit(get_asgi_application(), max_bytes=settings.MAX_UPLOAD_BYTES + settings.FORM_ROOM_BYTES)
import_module(settings.ROOT_URLCONF)  # pages, API and their schemas now, and not in the first request

# path prefix -> ASGI application; Django answers for everything else.
APPLICATIONS: dict = {}


async def application(scope, receive, send) -> None:
    """Answer the lifespan protocol here (Django does not), and pass requests to the application of their prefix."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await send({"type": "lifespan.shutdown.complete"})
                return
    chosen = next((app for prefix, app in APPLICATIONS.items() if scope.get("path", "").startswith(prefix)), django_application)
    await chosen(scope, receive, send)
