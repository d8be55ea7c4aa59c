"""Secrets: the `${secret:NAME}` syntax and the cipher of stored values. Where values are kept is not known here."""

import base64
import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from config.env import environment
from config.errors import InvalidInput, LecternError

SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
SECRET_REFERENCE = re.compile(r"\$\{secret:(" + SECRET_NAME.pattern + r")\}")
_ATTEMPT = re.compile(r"\$\{secret:[^}]{0,120}\}?")
_CONTEXT = b"lectern secrets v1"
_MASK = "[secret]"


def encrypt(value: str) -> bytes:
    """Under the current LECTERN_SECRET_KEY; two calls give two tokens."""
    return _cipher(_keys()).encrypt(value.encode())


def decrypt(token: bytes) -> str:
    """Also under an earlier key, named in LECTERN_SECRET_KEY_PREVIOUS."""
    try:
        return _cipher(_keys()).decrypt(bytes(token)).decode()
    except InvalidToken:
        raise LecternError(
            "A stored secret cannot be decrypted with LECTERN_SECRET_KEY. Put the key that it was stored under into "
            "LECTERN_SECRET_KEY_PREVIOUS, or store the secret again."
        ) from None


def rotate(token: bytes) -> bytes:
    """The same secret under the current key, for a command that walks the rows after a change of keys."""
    return encrypt(decrypt(token))


def references(document: Any) -> set[str]:
    """The names that a document refers to, at any depth; a reference that is not well formed is InvalidInput."""
    if isinstance(document, str):
        return _names(document)
    if isinstance(document, dict):
        return set().union(*(references(value) for value in document.values()))
    if isinstance(document, (list, tuple)):
        return set().union(*(references(value) for value in document))
    return set()


def resolve(value: Any, lookup: Callable[[str], str]) -> Any:
    """The value with each reference replaced by what `lookup` gives; what was put in is not read again for references.

    A name that `lookup` does not know (KeyError, LookupError or None) is InvalidInput naming it."""
    if isinstance(value, str):
        _names(value)
        return SECRET_REFERENCE.sub(lambda match: _looked_up(match[1], lookup), value)
    if isinstance(value, dict):
        return {key: resolve(item, lookup) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(resolve(item, lookup) for item in value)
    return value


def redact(text: str, values: Iterable[str]) -> str:
    """The text without the values, as they are and as URLs, JSON and basic authentication spell them. Values shorter than four
    characters stay: masking them would eat the text and hide nothing."""
    spellings = {spelling for value in values if len(value) >= 4 for spelling in _spellings(value)}
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, _MASK)
    return text


def _spellings(value: str) -> set[str]:
    encoded = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    return {value, json.dumps(value)[1:-1], encoded, *({quote(value, safe=""), quote_plus(value)} if value.isprintable() else ())}


def _names(text: str) -> set[str]:
    for attempt in _ATTEMPT.findall(text):
        if not SECRET_REFERENCE.fullmatch(attempt):
            raise InvalidInput(
                "A reference to a secret is not well formed: write ${secret:NAME}, the name of letters, digits, '_', '-' and '.', "
                "starting with a letter or '_', at most 100 characters."
            )
    return set(SECRET_REFERENCE.findall(text))


def _looked_up(name: str, lookup: Callable[[str], str]) -> str:
    try:
        found = lookup(name)
    except LookupError:
        found = None
    if found is None:
        raise InvalidInput(f"There is no secret named {name!r}. Store it first, or correct the name.", secret=name)
    return found


def _keys() -> tuple[str, ...]:
    # Django's setting, because an embedded installation generates the key that the environment does not give.
    return (settings.SECRET_KEY, *environment().secret_key_previous)


@cache
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(_derived(key))) for key in keys])


def _derived(key: str) -> bytes:
    """A key of its own for this purpose, so that sessions and secrets share no key."""
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=_CONTEXT).derive(key.encode())
