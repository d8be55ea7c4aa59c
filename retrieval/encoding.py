"""The question as a vector, once per embedding space."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from config.errors import LecternError
from kb import usage
from kb.embedding import spec_of
from kb.models import EmbeddingSpace, Usage
from kb.providers import Embedded, ModelSpec, embed_query, query_encoder, token_counter

log = logging.getLogger(__name__)


class EncodingFailed(Exception):
    """The model of a space did not embed the question; the text may be shown to whoever asked."""


@dataclass(slots=True)
class QueryVectors:
    """The vectors of one text, kept for as long as it is asked: comparing settings embeds nothing twice, and fails once."""

    text: str
    organization: UUID
    notes: list[str] = field(default_factory=list)
    _known: dict[int, np.ndarray | EncodingFailed] = field(default_factory=dict)

    def prepare(self, space: EmbeddingSpace, payers: Sequence[UUID] = ()) -> None:
        """Embed for a space, on the account of the knowledge bases that are searched; a failure is kept for `vector`."""
        if space.pk in self._known:
            return
        try:
            answer = self._embed(space)
        except LecternError as error:
            self._known[space.pk] = EncodingFailed(error.message)
        except Exception:
            # A model's runtime may raise anything; hybrid mode still has the words.
            name = space.embedding_model.name
            log.exception("The model %s did not embed a question.", name)
            self._known[space.pk] = EncodingFailed(f"The model {name} failed; the log of the server says why.")
        else:
            self._known[space.pk] = answer.vectors[0]
            self._charge(space, payers, answer.tokens)

    def vector(self, space: EmbeddingSpace) -> np.ndarray:
        """Raises `EncodingFailed`."""
        self.prepare(space)
        known = self._known[space.pk]
        if isinstance(known, EncodingFailed):
            raise known
        return known

    def _charge(self, space: EmbeddingSpace, payers: Sequence[UUID], tokens: int) -> None:
        usage.charge(
            organization_id=self.organization,
            knowledge_bases=payers,
            model=space.embedding_model,
            purpose=Usage.Purpose.QUESTIONS,
            texts=1,
            tokens=tokens,
        )

    def _embed(self, space: EmbeddingSpace) -> Embedded:
        spec = spec_of(space.embedding_model, organization_id=self.organization)
        text, note = cut_to_window(self.text, spec)
        if note:
            self.notes.append(note)
        return embed_query(query_encoder(spec), spec, text)


def cut_to_window(text: str, spec: ModelSpec) -> tuple[str, str]:
    """What of a text the model reads, and a note if that is not all."""
    counter = token_counter(spec)
    window = max(1, spec.max_input_tokens - counter.special - (counter.count(spec.query_prefix) if spec.query_prefix else 0))
    if len(text) <= window and text.isascii():
        return text, ""
    # Far more characters than any model reads in its window need not be tokenised.
    beginning = text[: window * 32]
    offsets = counter.offsets(beginning)
    if len(offsets) <= window and len(beginning) == len(text):
        return text, ""
    note = f"The query is longer than the {window} tokens that the model {spec.name} reads; what follows them counts only as words."
    return beginning[: offsets[window - 1][1]] if len(offsets) > window else beginning, note
