"""The bound on request bodies, on a real server."""

import asyncio
import contextlib
import http.client
import json
import threading
from collections.abc import Iterator

import pytest
import uvicorn

from config.limits import BodyLimit
from tests.fleet import free_port, wait_for

LIMIT = 1000


async def counting(scope, receive, send) -> None:
    """Answers with the number of bytes that came."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = str(size).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(BodyLimit(counting, max_bytes=LIMIT), port=port, lifespan="off", log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(lambda: server.started, seconds=10, what="uvicorn")
    yield port
    server.should_exit = True
    thread.join(10)


def post(port: int, body, **options) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the server answered before it had everything
            connection.request("POST", "/", body=body, **options)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_a_body_within_the_limit_passes(port):
    assert post(port, b"x" * LIMIT) == (200, str(LIMIT).encode())


def test_an_announced_body_is_refused_before_it_is_sent(port):
    status, body = post(port, b"", headers={"Content-Length": str(LIMIT + 1)})
    assert status == 413
    assert json.loads(body)["code"] == "too_large"


def test_a_chunked_body_is_counted(port):
    status, body = post(port, (b"x" * 300 for _ in range(10)), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    assert status == 413
    assert "1,000 bytes" in json.loads(body)["detail"]


def test_a_disk_that_is_full_is_told():
    """A body that does not fit is received on a real full device."""

    async def spooling(scope, receive, send) -> None:
        with open("/dev/full", "wb", buffering=0) as device:
            device.write((await receive())["body"])

    async def ask() -> list[dict]:
        sent: list[dict] = []

        async def receive() -> dict:
            return {"type": "http.request", "body": b"x" * 10, "more_body": False}

        async def send(message: dict) -> None:
            sent.append(message)

        await BodyLimit(spooling, max_bytes=LIMIT)({"type": "http", "headers": []}, receive, send)
        return sent

    start, body = asyncio.run(ask())
    assert start["status"] == 503
    assert (b"content-type", b"application/problem+json") in start["headers"]
    assert "disk of this server is full" in json.loads(body["body"])["detail"]
