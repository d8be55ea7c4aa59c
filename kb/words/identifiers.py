"""Names of things rather than words: error codes, part numbers, versions, functions, paths, addresses.

They are indexed whole (never stemmed) and in parts, and a query that names one can ask for it to the letter.
"""

import re

from kb.words.folding import fold

# More letters in one go are data, not a name that anybody types.
MAX_LENGTH = 256

_JOINED = re.compile(r"[./\\:@&,\-]")
_SEPARATORS = re.compile(r"[./\\:@&,_\-+#]+")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_LETTER_RUNS = re.compile(r"[^\W\d_]+")
_DIGIT_RUNS = re.compile(r"\d+")


def parts(token: str) -> list[str]:
    """`ERR_CONN_RESET` in three, `foo.bar` in two, `AB-1234` in two; a token without joints is itself."""
    return [part for part in _SEPARATORS.split(token) if part]


def humps(word: str) -> list[str]:
    """The parts of a camelCase word, `[]` if it is none. Plural acronyms (`PDFs`, `URLs`) are none."""
    if not word.isascii() or not _CAMEL.search(word) or (word[-1] == "s" and word[:-1].isupper()):
        return []
    found = _HUMPS.findall(word)
    return found if len(found) > 1 else []


def one_word(token: str) -> str | None:
    """What is written with joints but is one word, without them: 1,000 and 1000, U.S.A. and USA. Its parts mean nothing."""
    if _THOUSANDS.fullmatch(token):
        return token.replace(",", "")
    pieces = parts(token)
    if len(pieces) > 1 and "." in token and all(len(piece) == 1 and piece.isalpha() for piece in pieces):
        return fold("".join(pieces).casefold())
    return None


def whole(token: str) -> str | None:
    """The one term that stands for the identifier as a whole, or None if its parts say it all (`boundary-layer`, `and/or`)."""
    if token[-1] in "+#":
        return fold(token.casefold())
    joints = _JOINED.findall(token)
    pieces = parts(token)
    if len(pieces) < 2:
        return None
    if "_" in token or any(joint not in "-/&" for joint in joints) or any(c.isdigit() for c in token) or joints.count("/") > 1:
        return fold(token.casefold())
    if joints == ["-"] and len(pieces[0]) <= 3:
        # e-mail and email, wi-fi and wifi, on-line and online.
        return fold("".join(pieces).casefold())
    return None


def is_identifier(token: str) -> bool:
    """Whether the token asks for exactly itself. Narrower than `whole`: `e-mail`, `PostgreSQL`, `10-20`, `1950s` and `2nd` do not."""
    if token[-1] in "+#":
        return True
    if len(token) < 3 or len(token) > MAX_LENGTH:
        return False
    if any(c in token for c in "_@\\") and any(c.isalnum() for c in token):
        return True
    pieces = parts(token)
    letters = bool(_LETTER_RUNS.search(token))
    if len(pieces) > 1:
        return _joined_is_identifier(token, pieces, letters=letters)
    if token.isdigit():
        return len(token) >= 5
    if any(c.isdigit() for c in token):
        return not token[0].isdigit() or len(_DIGIT_RUNS.findall(token)) > 1
    return len(humps(token)) > 2 or (len(humps(token)) == 2 and token[0].islower() and len(humps(token)[0]) > 1)


def _joined_is_identifier(token: str, pieces: list[str], *, letters: bool) -> bool:
    if any(c.isdigit() for c in token):
        # `AB-1234`, `v2.3.1`, `10.0.0.1`; not the decimal 2.5, the range 10-20 or the fraction 1/2.
        return letters or token.count(".") > 1
    if "." in token or "::" in token:
        # Not e.g. and U.S.
        return letters and any(len(piece) > 1 for piece in pieces)
    return token.count("/") > 1 and "/" in token
