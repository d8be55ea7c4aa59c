"""Which network addresses may be connected to: pure rules and one `Guard` that resolves a name and keeps the addresses that pass."""

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread

from config.errors import InvalidInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolver = Callable[[str, int], Sequence[str]]

# Said apart from `is_global`, whose answer for these differs between Python's point releases.
_RESERVED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text) for text in ("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4")
) + tuple(ipaddress.ip_network(text) for text in ("2001::/23", "2001:db8::/32", "3fff::/20"))
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PORTS = re.compile(r"\*|\d{1,5}(-\d{1,5})?")
_FORM = "must look like 127.0.0.1/32:8001, 10.0.0.0/8:80,8000-8999 or [::1]/128:* (network, colon, ports)"


class AddressRefused(InvalidInput):
    """The host is, or resolves to, an address that must not be reached from here."""

    code = "address_refused"


class NameNotResolved(Exception):
    """The name has no address. `transient`: the name server failed; otherwise it said that there is no such name."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


@dataclass(frozen=True, slots=True)
class AllowedNetwork:
    """A private network that the operator opened, from the first to the last port."""

    network: Network
    ports: tuple[int, int]

    def covers(self, address: Address, port: int) -> bool:
        return address.version == self.network.version and address in self.network and self.ports[0] <= port <= self.ports[1]


def parse_networks(text: str) -> tuple[AllowedNetwork, ...]:
    """`10.1.0.0/16:443, 127.0.0.1/32:8001,9000-9010, [::1]/128:*`; an entry of ports alone belongs to the network before it.
    ValueError says which entry is wrong and why."""
    found: list[AllowedNetwork] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        head, separator, ports = entry.rpartition(":")
        network = _network(entry, head) if separator else found[-1].network if found else None
        if network is None or not _PORTS.fullmatch(ports):
            raise ValueError(f"{entry!r} {_FORM}")
        found.append(AllowedNetwork(network, _ports(entry, ports)))
    return tuple(found)


def _network(entry: str, head: str) -> Network:
    if (":" in head) != ("[" in head):
        raise ValueError(f"{entry!r} {_FORM}")
    try:
        return ipaddress.ip_network(head.replace("[", "").replace("]", ""), strict=True)
    except ValueError as error:
        raise ValueError(f"{entry!r}: {error}") from None


def _ports(entry: str, ports: str) -> tuple[int, int]:
    low, _, high = ("1-65535" if ports == "*" else ports).partition("-")
    first, last = int(low), int(high or low)
    if not 1 <= first <= last <= 65535:
        raise ValueError(f"{entry!r}: ports are numbers between 1 and 65535, the lower one first")
    return first, last


def embedded_ipv4(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a mapped, NAT64 or 6to4 address leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def is_public(address: Address) -> bool:
    """True only for global unicast addresses, by every IPv4 address inside them too; Teredo is refused altogether."""
    if getattr(address, "scope_id", None):
        return False
    inner = embedded_ipv4(address)
    if inner is not None:
        return is_public(inner)
    if address.is_multicast or address.is_unspecified or address.is_reserved or not address.is_global:
        return False
    if any(address in network for network in _RESERVED if network.version == address.version):
        return False
    return address.version == 4 or address in _UNICAST_V6


def system_resolver(host: str, port: int) -> list[str]:
    return [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@dataclass(frozen=True, slots=True)
class Guard:
    """`trusted` skips the address rules (endpoints that the operator set), never the resolving and pinning."""

    allowed: tuple[AllowedNetwork, ...] = ()
    trusted: bool = False
    resolver: Resolver = system_resolver

    def addresses(self, host: str, port: int, *, timeout: float | None = None) -> list[str]:
        """Resolves once; the answers are what may be connected to, in the resolver's order. One private address among public
        ones refuses the name, unless the operator opened a network that the name leads to: then only what is opened is used."""
        if not 1 <= port <= 65535:
            raise AddressRefused(f"Port {port} of {host} cannot be connected to. Use a port between 1 and 65535.")
        found = [_parse(text, host) for text in self._resolve(host, port, timeout)]
        if self.trusted:
            return [str(address) for address in found]
        opened = [address for address in found if any(network.covers(_plain(address), port) for network in self.allowed)]
        if not opened and not all(is_public(address) for address in found):
            raise AddressRefused(
                f"{host} is or resolves to a private or reserved address, which is refused (port {port}). Use a public address, or ask the "
                "operator to add its network and port to LECTERN_ALLOWED_PRIVATE_NETWORKS.",
                host=host,
                port=port,
            )
        return [str(address) for address in opened or found]

    def _resolve(self, host: str, port: int, timeout: float | None) -> Sequence[str]:
        bare = host.strip("[]").rstrip(".").lower()
        if not bare or "%" in bare:
            raise AddressRefused(f"The host {host!r} cannot be used: it is empty or names a network interface. Use a public address.")
        if bare == "localhost" or bare.endswith(".localhost"):
            return ["127.0.0.1", "::1"]
        literal = _literal(bare)
        if literal is not None:
            return [literal]
        found = _resolve_within(self.resolver, bare, port, timeout)
        if not found:
            raise NameNotResolved(f"The name {bare} has no address.", transient=False)
        return found


def _literal(host: str) -> str | None:
    """Any spelling that the C library reads as an address (127.1, 0x7f000001, 017700000001, ::1), in its usual form."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host)) if not re.search(r"\s", host) else None
    except (OSError, UnicodeError):
        return None


def _parse(text: str, host: str) -> Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise AddressRefused(f"{host} resolves to {text!r}, which is not an address.") from None


def _plain(address: Address) -> Address:
    return (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address


def _resolve_within(resolver: Resolver, host: str, port: int, timeout: float | None) -> Sequence[str]:
    """The system's resolver knows no deadline, so it runs in a thread that is left behind when time is up."""
    answer: list[Sequence[str]] = []
    failure: list[Exception] = []

    def ask() -> None:
        try:
            answer.append(list(dict.fromkeys(resolver(host, port))))
        except Exception as error:
            failure.append(error)

    thread = Thread(target=ask, name="resolve", daemon=True)
    thread.start()
    thread.join(timeout)
    if answer:
        return answer[0]
    if not failure:
        raise NameNotResolved(f"The name {host} was not resolved in time.", transient=True)
    error = failure[0]
    if isinstance(error, (socket.gaierror, UnicodeError)):
        again = isinstance(error, socket.gaierror) and error.errno in (socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_SYSTEM)
        raise NameNotResolved(f"The name {host} cannot be resolved ({error}).", transient=again) from error
    raise error
