"""Free-form parameters of stores and model providers: known keys only, and secrets only by name."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from kb.schemas.base import refuse_unstorable

# One whole reference: a value that only holds one would be half secret, half text, and could not be masked.
REFERENCE = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_.-]{0,99})\}")
_SECRET_KEY = re.compile(r"(?:^|_)(?:key|apikey|password|passwd|token|secret|credential|credentials|connection_string|authorization)$")
# Shapes of keys that vendors hand out, for values that stand under a harmless name.
_LOOKS_SECRET = re.compile(r"(?:sk-|sk_|rk_|ghp_|github_pat_|xox[abp]-|hf_|AKIA|AIza)[A-Za-z0-9_-]{12,}")
_ENDPOINT_LIKE = re.compile(
    r"(?:.*_)?(?:endpoint|endpoints|url|uri|host|hostname|hosts|server|proxy|api_base|apibase|base|baseurl|serverurl|domain|address|origin)"
    r"(?:_url|_uri|_host|_override)?"
)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError("must be text, a number, true or false.")


def _clean(value: Any) -> Any:
    return refuse_unstorable(value) if isinstance(value, str) else value


ParameterValue = Annotated[str | bool | int | float | None, BeforeValidator(_scalar), AfterValidator(_clean)]


def snake(key: str) -> str:
    """`baseUrl`, `base-url` and `BASE_URL` are one key to whoever compares."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").replace(".", "_").lower()


def is_secret_key(key: str) -> bool:
    """Whether a value under this key is a secret by its name."""
    return bool(_SECRET_KEY.search(snake(key)))


def is_endpoint_like(key: str) -> bool:
    return bool(_ENDPOINT_LIKE.fullmatch(snake(key)))


def looks_secret(value: str) -> bool:
    return bool(_LOOKS_SECRET.fullmatch(value))


def check_parameters(parameters: Mapping[str, Any], *, owner: str, allowed: Collection[str], hint: str = "") -> None:
    """ValueError for the first key that `owner` does not take, or a secret that is written out."""
    for key, value in parameters.items():
        if key not in allowed:
            raise ValueError(_unknown(key, owner=owner, allowed=allowed, hint=hint))
        _check_secret(key, value)


def _unknown(key: str, *, owner: str, allowed: Collection[str], hint: str) -> str:
    shown = key[:100].encode("utf-8", "backslashreplace").decode()
    if is_endpoint_like(key):
        return f"'{shown}' would be ignored by {owner}, and texts would go to another address than you think. {hint or 'Remove it.'}"
    near = get_close_matches(snake(key), list(allowed), n=1)
    guess = f" Did you mean '{near[0]}'?" if near else ""
    known = f"It takes: {', '.join(sorted(allowed))}." if allowed else "It takes no parameters."
    return f"'{shown}' is not a parameter of {owner}.{guess} {known}"


def _check_secret(key: str, value: Any) -> None:
    if not isinstance(value, str):
        return
    whole = REFERENCE.fullmatch(value)
    if is_secret_key(key):
        if value and not whole:
            raise ValueError(f"'{key}' holds a secret in clear. Store it as a secret and write ${{secret:NAME}} here.")
    elif "${secret:" in value:
        raise ValueError(f"'{key}' does not take a secret. Only keys, passwords, tokens and secrets may be written as ${{secret:NAME}}.")
    elif looks_secret(value):
        raise ValueError(f"'{key}' holds what looks like a key. Store it as a secret: whoever reads this document would see it.")
