"""The form of a configuration document: a text, the version that it was read from, and a consent where it takes something away."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from config.errors import InvalidInput, LecternError
from kb import versioning
from kb.admin.rows import ServiceForm
from kb.admin.text import text_of
from kb.bundles.texts import read_document, write_document
from kb.models import KnowledgeBase

EXAMPLE = {"name": "", "description": "", "visibility": "organization", "sources": [{"name": "files", "type": "upload"}]}
_STYLE = "font-family: ui-monospace, monospace; font-size: 13px; max-width: none; white-space: pre; overflow-x: auto"
_MONOSPACE = {"rows": 28, "style": _STYLE, "spellcheck": "false"}


class DocumentForm(ServiceForm):
    """The document as YAML or JSON, with the number of the version that it was read from."""

    document = forms.CharField(
        widget=UnfoldAdminTextareaWidget(_MONOSPACE), strip=False, help_text="YAML or JSON. What is left out gets its default."
    )
    comment = forms.CharField(
        required=False, max_length=1000, widget=UnfoldAdminTextInputWidget, help_text="What this version is for; shown in its history."
    )
    expected = forms.IntegerField(required=False, widget=forms.HiddenInput)
    # Shown when it is needed: when the version takes something away.
    removes = forms.BooleanField(required=False, widget=forms.HiddenInput, label="Remove them")

    class Meta:
        model = KnowledgeBase
        fields = ("organization",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            self.initial.setdefault("document", write_document(EXAMPLE))
        else:
            version = versioning.read(self.instance)
            self.initial.update(document=text_of(version), expected=version.number)

    def clean_document(self) -> dict[str, Any]:
        try:
            return read_document(self.cleaned_data["document"])
        except InvalidInput as error:
            raise forms.ValidationError(error.message) from None

    def clean(self) -> dict[str, Any]:
        """A version that drops sources is published only by who was told what goes with them."""
        cleaned = super().clean()
        if "document" in cleaned and not (self.instance._state.adding or self.refusal or cleaned.get("removes")):
            with suppress(LecternError):  # publishing says why
                removals = versioning.find_removals(self.instance, document=cleaned["document"], expected=cleaned.get("expected") or 0)
                if removals:
                    self.fields["removes"].widget = UnfoldBooleanSwitchWidget()
                    self.add_error("removes", f"{told(removals)} Tick this and save again to remove them, or put the sources back.")
        return cleaned

    def sentences(self, refusal: LecternError) -> list[tuple[str | None, str]]:
        """Every fault is one of the document, by its path."""
        faults = refusal.extra.get("errors", ())
        return [("document", f"{fault['path']}: {fault['message']}") for fault in faults] or [("document", refusal.message)]


def told(removals: Sequence[versioning.Removal]) -> str:
    """What a version takes away, in a sentence."""
    held = [f"“{r.name}” with {r.documents:,} documents, {r.chunks:,} chunks and {r.files:,} files" for r in removals]
    return f"This version removes {' and '.join(held)}."
