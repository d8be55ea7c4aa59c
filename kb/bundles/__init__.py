"""Configurations of knowledge bases as files: YAML, ZIP, and those of EDDI. Pure, without Django; `kb.transfers` puts them in and out."""

from kb.bundles.base import Entry, Export, Note, secret_names
from kb.bundles.reading import read_bundle, refuse_repeated
from kb.bundles.writing import slug, write_files, write_yaml, write_zip

__all__ = [
    "Entry",
    "Export",
    "Note",
    "read_bundle",
    "refuse_repeated",
    "secret_names",
    "slug",
    "write_files",
    "write_yaml",
    "write_zip",
]
