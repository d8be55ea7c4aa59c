"""Refusals that stand: what was refused for what it is, or for lack of an engine, is looked at again only when its bytes, the settings or
the engines of this installation are others. Until then it is skipped, so that one attachment does not make every run partial."""

from importlib.util import find_spec

from ingestion.extract.base import EXTRACTOR_VERSION
from ingestion.models import IngestionRun
from ingestion.plan import Plan
from ingestion.recognition import recognition_for
from kb.models import Document
from kb.schemas.fingerprints import fingerprint

# Others say nothing for sure, or hang on what other files and services say.
STANDING = frozenset(("no_engine", "ocr_off", "unsupported", "binary", "mislabelled", "empty", "encrypted", "no_text"))
KINDS = ("page", "picture", "speech")


def mark(run: IngestionRun, plan: Plan, content_hash: bytes) -> str:
    """The fingerprint of all that such a refusal hangs on."""
    recognition = recognition_for(run.organization_id, ocr=plan.ocr, policy=plan.policy)
    hangs_on = {
        "bytes": content_hash.hex(),
        "settings": plan.fingerprints["extract"],
        "extractor": EXTRACTOR_VERSION,
        "read by": {kind: recognition.recipe(kind) for kind in KINDS},
        "services": [bool(recognition.vision), bool(recognition.transcription), recognition.fault],
        "decoder": find_spec("av") is not None,
    }
    return fingerprint(hangs_on, stage="refused")


def stands(document: Document, run: IngestionRun, plan: Plan, content_hash: bytes) -> bool:
    """Whether the document's last refusal would be the same again."""
    return bool(document.refused_under) and bool(document.last_error) and document.refused_under == mark(run, plan, content_hash)
