"""The guard put under httpx: every new connection, so every hop, is resolved once, checked, and made to the checked address.

TLS and the Host header keep the name, because httpcore takes them from the request and not from the connection."""

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from config.addresses import AddressRefused, Guard, NameNotResolved

LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=15)
_bounds: ContextVar["_Bounds | None"] = ContextVar("bounds", default=None)


class NameFailed(httpcore.ConnectError):
    """A name without address, as the transport error that HTTP clients expect; the reason is its `__cause__`."""


@dataclass(slots=True)
class _Bounds:
    end: float
    bytes: float


@contextmanager
def wall_deadline(seconds: float, *, max_bytes: float = math.inf) -> Iterator[None]:
    """Everything that a guarded client of this thread does inside ends by then, however slowly the other side trickles, and
    reads no more than `max_bytes` from the network, whatever they are (endless headers, interim answers, empty frames)."""
    token = _bounds.set(_Bounds(time.monotonic() + seconds, max_bytes))
    try:
        yield
    finally:
        _bounds.reset(token)


def remaining(timeout: float | None, error: type[Exception] = httpcore.ReadTimeout) -> float | None:
    """The shorter of a timeout and what is left of the wall deadline; raises when nothing is."""
    bounds = _bounds.get()
    if bounds is None:
        return timeout
    left = bounds.end - time.monotonic()
    if left <= 0:
        raise error("the deadline is over")
    return left if timeout is None else min(timeout, left)


def spend(data: bytes) -> bytes:
    """Counts what was read against the bound of `wall_deadline`."""
    bounds = _bounds.get()
    if bounds is not None:
        bounds.bytes -= len(data)
        if bounds.bytes < 0:
            raise httpcore.RemoteProtocolError("it sends more than may be read")
    return data


class GuardedStream(httpcore.NetworkStream):
    """A socket whose single reads and writes also obey the wall deadline: a timeout alone starts anew with every byte."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return spend(self._stream.read(max_bytes, remaining(timeout, httpcore.ReadTimeout)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, remaining(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> httpcore.NetworkStream:
        return GuardedStream(self._stream.start_tls(ssl_context, server_hostname, remaining(timeout, httpcore.ConnectTimeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class GuardedBackend(httpcore.NetworkBackend):
    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._tcp = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception = NameFailed(f"{host} has no address")
        for address in _resolved(self._guard, host, port, remaining(timeout, httpcore.ConnectTimeout)):
            try:
                left = remaining(timeout, httpcore.ConnectTimeout)
                return GuardedStream(self._tcp.connect_tcp(address, port, left, local_address, socket_options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def connect_unix_socket(self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None) -> Any:
        raise AddressRefused("Sockets of this machine cannot be requested.")


def _resolved(guard: Guard, host: str, port: int, timeout: float | None) -> list[str]:
    try:
        return guard.addresses(host, port, timeout=timeout)
    except NameNotResolved as error:
        raise NameFailed(str(error)) from error


class GuardedTransport(httpx.HTTPTransport):
    def __init__(self, guard: Guard, verify: Any, limits: httpx.Limits = LIMITS) -> None:
        super().__init__(verify=verify, trust_env=False, limits=limits)
        # httpx has no parameter for the network backend; its pool is replaced by an equal one that has.
        self._pool = httpcore.ConnectionPool(
            ssl_context=verify,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=GuardedBackend(guard),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        check_scheme(request.url.scheme, request.url.host)
        return super().handle_request(request)


def check_scheme(scheme: str, host: str) -> None:
    """Only http and https are ever requested, on every hop."""
    if scheme not in ("http", "https") or not host:
        raise AddressRefused(f"The address must start with http:// or https:// and name a host, not {scheme or 'nothing'!r}.")
