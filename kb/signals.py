"""The one signal: a version was published. Sent inside the publishing transaction, so that API, admin, YAML and import cannot differ.

Arguments: `knowledge_base`, `version` (the new row), `previous` (row or None), `removed_sources` (list of Source rows).
"""

from django.dispatch import Signal

version_published = Signal()
