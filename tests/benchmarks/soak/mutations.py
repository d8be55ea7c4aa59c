"""What an API must survive: values, bodies, ids and headers that nobody sends on purpose, chosen by chance."""

import json
import random
from collections.abc import Callable
from typing import Any

Chooser = random.Random

VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    2**64 + 1,
    10**400,
    0.1,
    -1e308,
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "\udfff\ud800",
    "\u202e\u200b\ufeff",
    "🦊" * 300,
    "é́̂" * 500,
    "x" * 100_000,
    "' OR 1=1 --",
    "${secret:NAME}",
    "../../etc/passwd",
    "%00",
    "\r\nX-Injected: yes",
    "<script>alert(1)</script>",
    "NaN",
    "1e999",
    "2026-02-30T25:61:61Z",
    "9999-12-31T23:59:59.999999+14:00",
    [],
    {},
    [[]],
    [None],
    [0] * 2000,
    {"": ""},
    {"\x00": 1},
    {"a": {"b": {"c": [1, {"d": None}]}}},
    {"__proto__": {}, "$ref": "#", "schema": 10**9},
)
BODIES: tuple[bytes, ...] = (
    b"",
    b" ",
    b"null",
    b"0",
    b'"text"',
    b"[]",
    b"{",
    b"{'a': 1}",
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": 1e999}',
    b'{"a": ' + b"9" * 5000 + b"}",
    b'{"a": 1, "a": 2}',
    b'{"a": "\\ud800"}',
    b'{"a": "\\u0000"}',
    b'{"a": "\x01"}',
    b"\xff\xfe{\x00}\x00",
    b'\xef\xbb\xbf{"name": "bom"}',
    b'{"name": "\xff\xfe"}',
    b'{"name": "\xc0\x80"}',
    b'{"name": "\xed\xa0\x80"}',
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"[" * 60 + b"]" * 60,
    b"\x00" * 1000,
    b"a=1&b=2",
    b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
    b"x" * 2_000_000,
)
IDS = (
    "0",
    "-1",
    "1.5",
    "null",
    "%00",
    "%0A",
    "%20",
    "..%2f..%2fetc",
    "%F0%9F%A6%8A",
    "%ff%fe",
    "%ED%A0%80",
    "00000000-0000-0000-0000-000000000000",
    "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    "%7B00000000-0000-0000-0000-000000000000%7D",
    "urn:uuid:00000000-0000-0000-0000-000000000000",
    "0" * 32,
    "9" * 40,
    "x" * 3000,
    "٣",
    "1e5",
    "0x10",
    "１２",
    "'",
    "schema",
)
TYPES = (
    "text/plain",
    "text/plain; charset=utf-7",
    "text/plain; charset=zlib_codec",
    "text/plain; charset=\x7f",
    "application/xml",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "multipart/form-data; boundary=",
    "multipart/form-data; boundary=\"'",
    "application/json; charset=utf-16",
    "application/JSON",
    "application/problem+json",
    "/",
    "",
    "x" * 3000,
    "application/octet-stream",
)
HEADERS = {
    "If-Match": ('"1"', "1", "*", 'W/"1"', '""', "x" * 500, '"999999999999999999999"', '"1", "2"', '"-1"'),
    "If-None-Match": ("*", '"1"', "x"),
    "Idempotency-Key": ("", "a", "x" * 255, "x" * 256, "a b", "\t", "é".encode("latin-1").decode("latin-1")),
    "Accept": ("text/html", "application/xml", "*/*;q=x", "text/csv", "text/event-stream", "x" * 500, ""),
    "Accept-Language": ("x" * 500, "de;q=nan", "*"),
    "Authorization": ("", "Bearer", "Bearer x", "Basic Zm9vOmJhcg==", "Bearer " + "x" * 5000, "Bearer \xff", "lk_x"),
    "X-Lectern-Organization": ("", "x" * 300, "Rival"),
    "Last-Event-ID": ("x", "-1", "9" * 50),
    "Content-Encoding": ("gzip", "br", "x"),
    "Range": ("bytes=0-", "bytes=9-1"),
    "Cookie": ("sessionid=x; csrftoken=y", "sessionid=" + "x" * 3000),
    "X-Forwarded-For": ("127.0.0.1, x",),
    "Host": ("example.org", "127.0.0.1:99999", "[::1"),
}
QUERY = (
    "0",
    "-1",
    "1",
    "101",
    "9" * 30,
    "",
    "x",
    "true",
    "\x00",
    "\ud800",
    "[1]",
    "1e2",
    "٣",
    "🦊",
    "x" * 4000,
    "eyJhIjoxfQ==",
    "%",
    "None",
)


def mutate(value: Any, chance: Chooser, *, depth: int = 0) -> Any:
    """The value with something strange somewhere in it."""
    if isinstance(value, dict) and value and (depth == 0 or chance.random() < 0.8):
        changed = dict(value)
        key = chance.choice(list(changed))
        match chance.randrange(6):
            case 0:
                del changed[key]
            case 1:
                changed[str(chance.choice([entry for entry in VALUES if isinstance(entry, str)]))[:300]] = chance.choice(VALUES)
            case 2 | 3:
                changed[key] = mutate(changed[key], chance, depth=depth + 1)
            case _:
                changed[key] = chance.choice(VALUES)
        return changed
    if isinstance(value, list) and value and chance.random() < 0.6:
        place = chance.randrange(len(value))
        return [
            *value[:place],
            mutate(value[place], chance, depth=depth + 1),
            *value[place + 1 :],
            *([value[place]] * chance.choice((0, 1))),
        ]
    if isinstance(value, str) and value and chance.random() < 0.4:
        place = chance.randrange(len(value) + 1)
        return value[:place] + chance.choice(("\x00", "\ud800", "\n", "🦊", "${secret:X}", "\u202e")) + value[place:]
    return chance.choice(VALUES)


def as_json(value: Any) -> bytes:
    """With lone surrogates as JSON escapes, numbers of any size included."""
    return json.dumps(value).encode("ascii")


def multipart(chance: Chooser) -> tuple[bytes, str]:
    """(body, content type) of a form that is damaged in one way."""
    name = chance.choice(
        ('a"b.md', "a\\b.md", "..%2f", "../../x.md", "CON.md", "🦊.md", "x" * 400 + ".md", "", ".", "a\x00b.md", "ä" * 260, "\u202egpj.md")
    )
    content = chance.choice((b"", b"# A\n\nwords", b"\x00\x01\x02", b"\xff\xfea\x00", b"%PDF-1.7\n%%EOF", b"PK\x03\x04", b"x" * 300_000))
    part = f'--b\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'.encode() + content + b"\r\n"
    damages: tuple[Callable[[], bytes], ...] = (
        lambda: part + b"--b--\r\n",
        lambda: part * 20 + b"--b--\r\n",
        lambda: part,
        lambda: part[: chance.randrange(len(part))],
        lambda: b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
        lambda: b'--b\r\nContent-Disposition: form-data; name="files"\r\n\r\nno file\r\n--b--\r\n',
        lambda: b"--b\r\n" + b"X: y\r\n" * 2000 + b"\r\n\r\n--b--\r\n",
        lambda: b"--other\r\n\r\n--other--\r\n",
        lambda: b"".join(b'--b\r\nContent-Disposition: form-data; name="f%d"\r\n\r\nx\r\n' % index for index in range(1500)) + b"--b--\r\n",
        lambda: part.replace(b"\r\n\r\n", b"\r\nContent-Transfer-Encoding: base64\r\n\r\n") + b"--b--\r\n",
        lambda: part.replace(b"filename=", b"filename*=utf-9''%ff%00; x=") + b"--b--\r\n",
    )
    return chance.choice(damages)(), "multipart/form-data; boundary=b"
