"""The same guard for asyncio, under httpx2: the client that pydantic-ai and openai take (httpx is deprecated there).

Apart from `config.wire`, so that processes without models do not import a second HTTP library."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

import anyio.to_thread
import httpcore2
import httpx2

from config.addresses import AddressRefused, Guard, NameNotResolved
from config.errors import PermanentProviderError
from config.http_errors import shown
from config.wire import check_scheme

LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=15)


class AsyncGuardedBackend(httpcore2.AsyncNetworkBackend):
    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._tcp = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in await anyio.to_thread.run_sync(self._addresses, host, port, timeout, abandon_on_cancel=True):
            try:
                return await self._tcp.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None) -> Any:
        raise AddressRefused("Sockets of this machine cannot be requested.")

    async def sleep(self, seconds: float) -> None:
        await self._tcp.sleep(seconds)

    def _addresses(self, host: str, port: int, timeout: float | None) -> list[str]:
        try:
            return self._guard.addresses(host, port, timeout=timeout)
        except NameNotResolved as error:
            raise httpcore2.ConnectError(str(error)) from error


class BoundedStream(httpx2.AsyncByteStream):
    """A body that ends with an error when it is larger than it may be: the libraries above read it whole into memory."""

    def __init__(self, stream: Any, url: httpx2.URL, max_bytes: int) -> None:
        self._stream, self._url, self._most = stream, url, max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for piece in self._stream:
            seen += len(piece)
            if seen > self._most:
                raise PermanentProviderError(f"{shown(str(self._url))} answers with more than {self._most:,} bytes. Check the address.")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class AsyncGuardedTransport(httpx2.AsyncHTTPTransport):
    """`max_bytes` bounds an answer's body, which then may not be compressed: what it unpacks to would have no bound."""

    def __init__(self, guard: Guard, verify: Any, limits: httpx2.Limits = LIMITS, *, max_bytes: int | None = None) -> None:
        super().__init__(verify=verify, trust_env=False, limits=limits)
        self._most = max_bytes
        # As in config.wire: no parameter leads to the network backend.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=verify,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=AsyncGuardedBackend(guard),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        check_scheme(request.url.scheme, request.url.host)
        response = await super().handle_async_request(request)
        if self._most is None:
            return response
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            await response.aclose()
            raise PermanentProviderError(f"{shown(str(request.url))} sends the encoding {encoding[:40]!r}, which was not asked for.")
        bounded = BoundedStream(response.stream, request.url, self._most)
        return httpx2.Response(response.status_code, headers=response.headers, stream=bounded, extensions=response.extensions)
