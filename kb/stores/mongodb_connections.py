"""Connections of pymongo: by the rules for addresses that a tenant may name, and by options that read nothing of this machine.

A cluster tells its client which other hosts belong to it, and names resolve anew with each connection. So what counts is what a socket is
opened to, and pymongo opens all of them by one function, which is ours from the import of this module on: it resolves once, refuses what is
not public unless the operator opened it, and connects to the address that was looked at. TLS still checks the name.
"""

import socket
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pymongo import MongoClient, pool_shared

from config.addresses import AddressRefused, NameNotResolved, system_resolver
from config.http import guard_for
from kb.stores.base import StoreRefused

# Other ways to log in ask the cloud that we run in for its own credentials; other options read files.
_MECHANISMS = frozenset({"DEFAULT", "SCRAM-SHA-1", "SCRAM-SHA-256"})
_OPTIONS = frozenset(
    {"appname", "authmechanism", "authsource", "compressors", "directconnection", "maxpoolsize", "minpoolsize"}
) | frozenset({"readpreference", "replicaset", "retryreads", "retrywrites", "srvmaxhosts", "srvservicename", "ssl", "tls", "w"})
_SECONDS = 5

_connect = pool_shared._create_connection


def _connect_guarded(address: tuple[str, int], options: Any) -> socket.socket:
    host, port = address
    if host.endswith(".sock"):
        raise AddressRefused(f"{host} is a socket of this machine, which is refused.")
    try:
        found = guard_for(trusted=False, allowed=None, resolver=system_resolver).addresses(host, port, timeout=options.connect_timeout)
    except NameNotResolved as error:
        raise OSError(str(error)) from error
    failure = OSError(f"{host} has no address")
    for each in found:
        try:
            return _connect((each, port), options)
        except OSError as error:
            failure = error
    raise failure


pool_shared._create_connection = _connect_guarded


def open_client(connection_string: str) -> MongoClient:
    """Asks the name server where the string begins with mongodb+srv. Raises StoreRefused, and what pymongo raises for a wrong string."""
    _check(connection_string)
    milliseconds = 1000 * _SECONDS
    return MongoClient(
        connection_string,
        connect=False,
        serverSelectionTimeoutMS=milliseconds,
        connectTimeoutMS=milliseconds,
        appname="lectern",
        w="majority",
    )


def _check(connection_string: str) -> None:
    url = urlsplit(connection_string)
    if url.scheme not in ("mongodb", "mongodb+srv"):
        raise StoreRefused("The store mongodb-atlas: connection_string must begin with mongodb:// or mongodb+srv://.")
    if connection_string.partition("?")[0].count("@") > 1:
        raise StoreRefused(
            "The store mongodb-atlas: write @ : / and % in the name and password of connection_string as %40 %3A %2F and %25."
        )
    for name, value in parse_qsl(url.query, keep_blank_values=True):
        if name.lower() not in _OPTIONS:
            raise StoreRefused(f"The store mongodb-atlas: the option '{name[:50]}' of connection_string is not allowed. Remove it.")
        if name.lower() == "authmechanism" and value.upper() not in _MECHANISMS:
            raise StoreRefused("The store mongodb-atlas logs in with a user name and password alone. Remove authMechanism.")
