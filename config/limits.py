"""What can go wrong with request bodies before anything else, as problem documents.

Django spools a whole body to disk before a view, and so before authentication, runs.
"""

import errno
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


log = logging.getLogger(__name__)
DISK_FULL = "The disk of this server is full. Nothing was kept; make room and try again."


class BodyTooLarge(Exception):
    """The client sent more than is taken, whatever it announced."""


class BodyLimit:
    """Answers 413 by the announced length, and as soon as more comes than that; 503 where the disk does not take what comes."""

    def __init__(self, application: Application, *, max_bytes: int) -> None:
        self.application, self.max_bytes = application, max_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self.max_bytes:
            await self._refuse(send)
            return
        received, answered = 0, False

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.max_bytes:
                raise BodyTooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self.application(scope, counted, noted)
        except BodyTooLarge:
            if not answered:
                await self._refuse(send)
        except OSError as error:
            if answered or not is_disk_full(error):
                raise
            log.error("A request could not be received: the disk is full.")
            await _answer(send, 503, "unavailable", "Service Unavailable", DISK_FULL)

    async def _refuse(self, send: Send) -> None:
        detail = f"The request is larger than {self.max_bytes:,} bytes. Send less at a time, or raise LECTERN_MAX_UPLOAD_BYTES."
        await _answer(send, 413, "too_large", "Content Too Large", detail)


def is_disk_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


async def _answer(send: Send, status: int, code: str, title: str, detail: str) -> None:
    problem = {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail}
    body = json.dumps(problem).encode()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
