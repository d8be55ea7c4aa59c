"""The one signal: a version was published. Sent inside the publishing transaction, so that API, admin, YAML and import cannot differ.

Arguments: `knowledge_base`, `version` (the new row), `previous` (row or None), `removed_sources` (list of Source rows), `retyped_sources`
(Source row that kept its id under another type → the row, in state `removing`, that takes over what it had).
"""

from django.dispatch import Signal

version_published = Signal()
