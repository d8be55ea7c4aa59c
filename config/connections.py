"""Keep-alive connections under the guard without a client around them: a crawl sends many small requests, and httpx costs three
times what they do."""

import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import httpcore

from config.addresses import AllowedNetwork, Resolver, system_resolver
from config.errors import LecternError
from config.http import certificates, guard_for
from config.wire import GuardedBackend, check_scheme, wall_deadline

# Headers of more than this, interim answers included, are an attack; h11 takes 100 KiB of one answer's, h2 64 KiB.
_HEAD_BYTES = 256 * 1024
_KEEPALIVE_SECONDS = 15.0
# A kept connection that the server closed in the meantime fails like this; the request was not answered, so it is sent again.
_STALE = (httpcore.NetworkError, httpcore.RemoteProtocolError, httpcore.ConnectionNotAvailable)
_ERRORS = (LecternError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)


class Exchange:
    """One answer: iterate the raw pieces of its body."""

    def __init__(self, response: httpcore.Response) -> None:
        self.status = response.status
        self.headers: Sequence[tuple[bytes, bytes]] = response.headers
        self.version = response.extensions.get("http_version", b"HTTP/1.1")
        self.whole = False
        self._stream = response.stream

    def __iter__(self) -> Iterator[bytes]:
        with _readable():
            yield from self._stream
        self.whole = True


class Connections:
    """Safe for threads. A connection serves one request at a time, HTTP/2 ones too: a stream that stalls then holds up nobody
    else, and what one thread gives up cannot fail the others. Up to `idle` connections are kept for the next request."""

    def __init__(
        self,
        *,
        idle: int = 16,
        http2: bool = True,
        allowed: Sequence[AllowedNetwork] | None = None,
        resolver: Resolver = system_resolver,
        verify: ssl.SSLContext | None = None,
    ) -> None:
        self._backend = GuardedBackend(guard_for(trusted=False, allowed=allowed, resolver=resolver))
        self._verify = verify or certificates(http2=http2)
        self._http2 = http2
        self._most_idle = idle
        self._idle: list[httpcore.HTTPConnection] = []
        self._lock = Lock()

    @contextmanager
    def get(
        self, url: httpcore.URL, headers: Sequence[tuple[bytes, bytes]], *, timeout: float, deadline: float, max_bytes: int
    ) -> Iterator[Exchange]:
        """The headers come within `timeout` seconds, everything within `deadline` and, inside the block, `max_bytes` of the network.
        Failures are httpcore's and AddressRefused."""
        check_scheme(url.scheme.decode("ascii"), url.host.decode("ascii"))
        started = time.monotonic()
        timeouts = {"connect": min(timeout, 10.0), "read": timeout, "write": timeout}
        request = httpcore.Request(b"GET", url, headers=headers, extensions={"timeout": timeouts})
        with wall_deadline(timeout, max_bytes=_HEAD_BYTES), _readable():
            connection, response = self._send(request)
        exchange = Exchange(response)
        try:
            with wall_deadline(deadline - (time.monotonic() - started), max_bytes=max_bytes):
                yield exchange
        finally:
            response.close()
            self._give_back(connection, whole=exchange.whole)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _send(self, request: httpcore.Request) -> tuple[httpcore.HTTPConnection, httpcore.Response]:
        kept = self._take(request.url.origin)
        if kept is not None:
            try:
                return kept, kept.handle_request(request)
            except _STALE:
                kept.close()
            except BaseException:
                kept.close()
                raise
        made = httpcore.HTTPConnection(
            request.url.origin,
            ssl_context=self._verify,
            keepalive_expiry=_KEEPALIVE_SECONDS,
            http2=self._http2,
            network_backend=self._backend,
        )
        try:
            return made, made.handle_request(request)
        except BaseException:
            made.close()
            raise

    def _take(self, origin: httpcore.Origin) -> httpcore.HTTPConnection | None:
        """The connection used last: the others may then expire."""
        gone: list[httpcore.HTTPConnection] = []
        found = None
        with self._lock:
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index].can_handle_request(origin):
                    connection = self._idle.pop(index)
                    if not connection.has_expired():
                        found = connection
                        break
                    gone.append(connection)
        for connection in gone:
            connection.close()
        return found

    def _give_back(self, connection: httpcore.HTTPConnection, *, whole: bool) -> None:
        surplus: httpcore.HTTPConnection | None = connection
        if whole and connection.is_idle():
            with self._lock:
                self._idle.append(connection)
                surplus = self._idle.pop(0) if len(self._idle) > self._most_idle else None
        if surplus is not None:
            surplus.close()


@contextmanager
def _readable() -> Iterator[None]:
    """What a server's nonsense makes the protocol libraries raise is a protocol error, whatever its class."""
    try:
        yield
    except (*_ERRORS, GeneratorExit):
        raise
    except httpcore.ConnectionNotAvailable as error:
        raise httpcore.RemoteProtocolError("the server closes the connection") from error
    except (LookupError, ValueError) as error:
        raise httpcore.RemoteProtocolError(f"it cannot be read: {error}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("h2", "hpack", "hyperframe", "h11"):
            raise
        raise httpcore.RemoteProtocolError(f"it breaks the rules of HTTP: {error}") from error
