"""Which services an uploader's policy may have called: pairs of an endpoint and a secret that were bound together by who may."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from config.errors import Conflict, InvalidInput, NotFound
from kb import access, services
from kb.access import Actor, Level
from kb.models import ServiceBinding
from kb.providers.base import ModelSpec
from kb.schemas.addresses import check_url
from kb.schemas.parameters import looks_secret
from kb.schemas.policy import BoundService
from kb.schemas.remote import SECRET_NAME
from kb.versioning import rules

Purpose = ServiceBinding.Purpose
# The block of a policy that names a service, by what the service is for.
BLOCKS: Mapping[str, str] = {Purpose.TRANSCRIPTION: "transcribe", Purpose.VISION: "vision"}
# Asked for where neither a policy nor the binding names a model: the names that such servers usually take.
DEFAULT_MODELS: Mapping[str, str] = {Purpose.TRANSCRIPTION: "whisper-1", Purpose.VISION: "gpt-4o-mini"}


def bound_service(organization_id: UUID, *, purpose: str, service: BoundService) -> ServiceBinding | None:
    """The binding that a policy's block means, asked again at every use; None where it names no service. `InvalidInput` for an
    endpoint, or a secret, that is not bound or is bound to another: nothing may be sent there."""
    if service.endpoint is None and service.credential is None:
        return None
    rows = ServiceBinding.objects.filter(Q(organization=organization_id) | Q(organization=None), purpose=purpose)
    named = [row for row in rows.order_by("organization_id", "created_at") if _is_meant(row, service)]
    if not named:
        block = BLOCKS[purpose]
        message = (
            "names an endpoint and a credential that are not bound together here. Name a pair that an operator has bound, "
            "or ask for this one: a key is only sent where it was bound to."
        )
        place = f"{block}.endpoint" if service.endpoint is not None else f"{block}.credential"
        raise InvalidInput(f"The ingest policy is not valid. {place}: {message}", errors=[{"path": place, "message": message}])
    return named[0]


def service_for(organization_id: UUID, *, purpose: str, service: BoundService) -> ServiceBinding | None:
    """The service that a file is sent to: the one that its policy names, else the default of the organization, else of the installation.
    Raises as `bound_service`."""
    if named := bound_service(organization_id, purpose=purpose, service=service):
        return named
    rows = ServiceBinding.objects.filter(Q(organization=organization_id) | Q(organization=None), purpose=purpose, is_default=True)
    return rows.order_by(F("organization_id").asc(nulls_last=True)).first()


def service_spec(binding: ServiceBinding, *, organization_id: UUID, model: str = "") -> ModelSpec:
    """The service as it is called, with its secret; an organization's own never gets a secret of the installation."""
    own = binding.organization_id is not None
    secret = services.secret_value(organization_id, binding.credential, own_only=own) if binding.credential else None
    name = model or binding.model or DEFAULT_MODELS[binding.purpose]
    spec = ModelSpec(name=name, provider="openai", model=name, dimension=0, max_input_tokens=0, endpoint=binding.endpoint)
    return replace(spec, credential=secret, trusted=not own)


def _is_meant(row: ServiceBinding, service: BoundService) -> bool:
    """The endpoint is to the letter that of the binding, and the secret is its own; an endpoint alone means a service without one."""
    if service.endpoint is None:
        return False  # a secret without the address that it goes to
    return normal(service.endpoint) == row.endpoint and (service.credential or "") == row.credential


def normal(endpoint: str) -> str:
    """Scheme and host in lower case, no port that goes without saying, no slash at the end."""
    parts = urlsplit(endpoint.strip())
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    port = f":{parts.port}" if parts.port and parts.port != usual else ""
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}{query}"


def get_binding(actor: Actor, identifier: str | UUID, *, change: bool = False) -> ServiceBinding:
    found = access.service_bindings(actor).filter(id=access.parse_id(identifier)).first()
    if found is None:
        raise NotFound()
    if change:
        _require_binder(actor, installation=found.organization_id is None)
    return found


def bind_service(actor: Actor, *, document: Mapping[str, Any], installation: bool = False) -> ServiceBinding:
    """Bind an endpoint and a secret together; administrators for their organization, operators for everybody."""
    _require_binder(actor, installation=installation)
    binding = ServiceBinding(organization=None if installation else actor.organization)
    _fill(binding, document)
    return binding


def change_binding(binding: ServiceBinding, *, document: Mapping[str, Any]) -> ServiceBinding:
    _fill(binding, document)
    return binding


def delete_binding(binding: ServiceBinding) -> None:
    """Policies that name the pair are refused from now on, and their files fail with a sentence that says so."""
    binding.delete()


def _require_binder(actor: Actor, *, installation: bool) -> None:
    if installation:
        access.require_operator(actor)
    else:
        access.require(actor, Level.ADMIN)


def _fill(binding: ServiceBinding, document: Mapping[str, Any]) -> None:
    faults = {}
    endpoint, credential = str(document["endpoint"]), document.get("credential") or ""
    try:
        # What an organization binds may not lead into the network of the installation; what an operator binds may.
        endpoint = normal(check_url(endpoint, rules=rules(), public=binding.organization_id is not None))
    except ValueError as error:
        faults["endpoint"] = str(error)
    if credential and (not SECRET_NAME.fullmatch(credential) or looks_secret(credential)):
        faults["credential"] = "must be the name of a secret, not the key itself. Store the key as a secret first."
    if faults:
        first, message = next(iter(faults.items()))
        errors = [{"path": path, "message": text} for path, text in faults.items()]
        raise InvalidInput(f"The binding is not valid. {first}: {message}", errors=errors)
    binding.purpose, binding.endpoint, binding.credential = document["purpose"], endpoint, credential
    binding.model, binding.is_default = document.get("model") or "", bool(document.get("is_default"))
    try:
        with transaction.atomic():
            if binding.is_default:  # the flag moves: two defaults cannot stand beside each other
                others = ServiceBinding.objects.filter(organization=binding.organization_id, purpose=binding.purpose, is_default=True)
                others.exclude(id=binding.id).update(is_default=False)
            binding.save()
    except IntegrityError as error:
        if "service_binding_once" not in str(error):
            raise
        raise Conflict("This endpoint and this credential are bound together already.") from error
