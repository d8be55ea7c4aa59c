"""What rows that call a service have in common: where it is, what opens it, and what it takes besides."""

import re
from typing import Any

from kb.schemas.addresses import check_url
from kb.schemas.base import Rules
from kb.schemas.parameters import REFERENCE, ParameterValue, check_parameters, looks_secret
from kb.schemas.providers import ProviderRules

SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")


def check_endpoint(value: str | None, *, provider: str | None, taken: ProviderRules, rules: Rules) -> str | None:
    if value is None:
        if taken.needs_endpoint:
            raise ValueError(f"is required for provider {provider}.")
        return None
    if not taken.takes_endpoint:
        raise ValueError(f"would be ignored by provider {provider}. Remove it.")
    return check_url(value, rules=rules, public=not rules.trusted)


def check_credential(value: str | None, *, provider: str | None, taken: ProviderRules, endpoint: str | None) -> str | None:
    if value is None:
        if taken.needs_credential and (endpoint is None or taken.needs_endpoint):
            raise ValueError(f"is required for provider {provider}: store the key as a secret and write its name.")
        return None
    if not taken.takes_credential:
        raise ValueError(f"is not used by provider {provider}. Remove it.")
    if not SECRET_NAME.fullmatch(value) or looks_secret(value):
        raise ValueError("must be the name of a secret (letters, digits, _ . -), not the key itself. Store the key as a secret first.")
    return value


def check_known(value: dict[str, ParameterValue], *, provider: str, taken: ProviderRules) -> None:
    hint = "Write the address in `endpoint`." if taken.takes_endpoint else "Remove it."
    check_parameters(value, owner=f"provider {provider}", allowed=taken.parameters, hint=hint)


def name_of_reference(data: Any) -> Any:
    """`${secret:NAME}` and `NAME` are the same credential."""
    if isinstance(data, dict) and isinstance(data.get("credential"), str) and (match := REFERENCE.fullmatch(data["credential"])):
        return {**data, "credential": match.group(1)}
    return data
