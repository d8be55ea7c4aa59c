"""Addresses that a person writes into a document: what can be refused at save, before any request.

Host names are not looked up here (they are, on every request and every hop); only an address written literally is judged, in each of the
forms that a resolver would read as one (`127.1`, `0x7f000001`, `[::ffff:10.0.0.1]`, `localhost`), by the rules of the outbound client."""

from urllib.parse import urlsplit

from config.addresses import AddressRefused, Guard, NameNotResolved
from kb.schemas.base import Rules

LONGEST_URL = 8192
_DEFAULT_PORTS = {"http": 80, "https": 443}


def check_url(url: str, *, rules: Rules, public: bool = True) -> str:
    """An http(s) address with a host and without credentials; `public` also refuses literal private addresses."""
    url = url.strip()
    if len(url) > LONGEST_URL:
        raise ValueError(f"is {len(url)} characters long; at most {LONGEST_URL} are allowed.")
    if any(character.isspace() or ord(character) < 0x20 or character == "\\" for character in url):
        raise ValueError("holds a space, a control character or a backslash. Percent-encode it.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"is not an address: {error}.") from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise ValueError("must start with http:// or https://.")
    if not host:
        raise ValueError("has no host. Write it like https://docs.example.com/.")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a user name or password. They would be stored and logged in clear: remove them.")
    if port == 0:
        raise ValueError("has port 0, which does not exist.")
    _check_host_name(host)
    if public and rules.strict:
        _refuse_private(host, port or _DEFAULT_PORTS[parts.scheme], rules)
    return url


def _check_host_name(host: str) -> None:
    if ":" in host:
        return  # an IPv6 literal, which urlsplit has read
    try:
        ascii_host = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ValueError(f"has a host name that is none: {host[:80]}.") from error
    labels = ascii_host.removesuffix(".").split(".")
    if len(ascii_host) > 253 or any(not label or len(label) > 63 for label in labels):
        raise ValueError(f"has a host name that is none: {host[:80]}.")
    if not all(character.isalnum() or character in "-_" for label in labels for character in label):
        raise ValueError(f"has a host name with a character that no host has: {host[:80]}.")


def _no_look_up(host: str, port: int) -> list[str]:
    return []


def _refuse_private(host: str, port: int, rules: Rules) -> None:
    # The client reads full-width digits and dots as the resolver does: fold them before judging.
    folded = host if host.isascii() else host.encode("idna").decode("ascii")
    try:
        Guard(allowed=rules.allowed_networks, resolver=_no_look_up).addresses(folded, port)
    except NameNotResolved:
        return  # an ordinary name
    except AddressRefused as error:
        raise ValueError(f"cannot be used: {error.message}") from error
