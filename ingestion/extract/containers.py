"""Which format a ZIP or OLE2 container holds. A format is a row of ZIP_FORMATS or OLE2_FORMATS: what is told apart here is a table."""

import re
from dataclasses import dataclass
from pathlib import Path

import olefile

from config.errors import ExtractionError
from ingestion.extract.archive import Archive, damaged, needs_password
from ingestion.extract.base import MEBIBYTE, Limits
from ingestion.extract.formats import FORMATS

OLE2_SEARCHED_BYTES = 4 * MEBIBYTE
TYPES_BYTES = MEBIBYTE
MIMETYPE_BYTES = 200
# An Office file with a password is an OLE2 container around this stream.
ENCRYPTED_STREAM = "EncryptedPackage"
MAIN_PART = "/relationships/officeDocument"
_TAG = re.compile(r"<(?:[\w.-]+:)?(Relationship|Override)\b([^>]*)>")
_ATTRIBUTE = re.compile(r"([\w.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ROOT_TYPE = re.compile(rb"<[^>]*full-path=\"/\"[^>]*>")


@dataclass(frozen=True, slots=True)
class ContainerFormat:
    """`format` is a name of formats.FORMATS; what stands there is read, everything else refused with `words` and `advice`.
    A ZIP is known by one of the `types`, which the container states, or by how a part's name begins; OLE2 by the name of a stream."""

    format: str
    media_type: str
    words: str
    parts: tuple[str, ...]
    types: tuple[str, ...] = ()
    advice: str = "Save it as PDF or HTML and upload that."


_OPEN_XML = "application/vnd.openxmlformats-officedocument."
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_OLD = "Save it as {} and upload that."

# The first that fits decides.
ZIP_FORMATS: tuple[ContainerFormat, ...] = (
    ContainerFormat(
        format="docx",
        media_type=f"{_OPEN_XML}wordprocessingml.document",
        words="a Word document (.docx)",
        types=("wordprocessingml.document.main+xml", "wordprocessingml.template.main+xml", "ms-word.document.macroEnabled.main+xml"),
        parts=("word/document",),
    ),
    ContainerFormat(
        format="xlsb",
        media_type="application/vnd.ms-excel.sheet.binary.macroEnabled.12",
        words="a binary Excel workbook (.xlsb)",
        types=("ms-excel.sheet.binary.macroEnabled.main",),
        parts=("xl/workbook.bin",),
        advice=_OLD.format(".xlsx"),
    ),
    ContainerFormat(
        format="xlsx",
        media_type=f"{_OPEN_XML}spreadsheetml.sheet",
        words="an Excel workbook (.xlsx)",
        types=("spreadsheetml.sheet.main+xml", "spreadsheetml.template.main+xml", "ms-excel.sheet.macroEnabled.main+xml"),
        parts=("xl/workbook",),
    ),
    ContainerFormat(
        format="pptx",
        media_type=f"{_OPEN_XML}presentationml.presentation",
        words="a PowerPoint presentation (.pptx)",
        types=(
            *("presentationml.presentation.main+xml", "presentationml.slideshow.main+xml", "presentationml.template.main+xml"),
            *("ms-powerpoint.presentation.macroEnabled.main+xml", "ms-powerpoint.slideshow.macroEnabled.main+xml"),
        ),
        parts=("ppt/presentation",),
    ),
    ContainerFormat(
        format="odt",
        media_type=f"{_OPEN_DOCUMENT}text",
        words="an OpenDocument text (.odt)",
        types=(f"{_OPEN_DOCUMENT}text",),
        parts=(),
    ),
    ContainerFormat(
        format="ods",
        media_type=f"{_OPEN_DOCUMENT}spreadsheet",
        words="an OpenDocument spreadsheet (.ods)",
        types=(f"{_OPEN_DOCUMENT}spreadsheet",),
        parts=(),
    ),
    ContainerFormat(
        format="odp",
        media_type=f"{_OPEN_DOCUMENT}presentation",
        words="an OpenDocument presentation (.odp)",
        types=(f"{_OPEN_DOCUMENT}presentation",),
        parts=(),
    ),
    ContainerFormat(
        format="epub",
        media_type="application/epub+zip",
        words="an EPUB book",
        types=("application/epub+zip",),
        parts=("META-INF/container.xml",),
    ),
    ContainerFormat(format="", media_type="", words="an OpenDocument file", types=(_OPEN_DOCUMENT,), parts=("content.xml",)),
    ContainerFormat(format="", media_type="", words="a Pages, Numbers or Keynote file", parts=("Index/", "index.apxl", "index.xml")),
)

# What is named so is meant to be a document, whatever it holds.
DOCUMENT_EXTENSIONS = frozenset({row.format for row in ZIP_FORMATS if row.format} | {"docm", "dotx", "xlsm", "xltx", "pptm", "ppsx"})

OLE2_FORMATS: tuple[ContainerFormat, ...] = (
    ContainerFormat(
        format="msg",
        media_type="application/vnd.ms-outlook",
        words="an Outlook message (.msg)",
        parts=("__properties_version1.0",),
        advice=_OLD.format(".eml"),
    ),
    ContainerFormat(
        format="xls",
        media_type="application/vnd.ms-excel",
        words="an old Excel workbook (.xls)",
        parts=("Workbook", "Book"),
        advice=_OLD.format(".xlsx"),
    ),
    ContainerFormat(
        format="doc",
        media_type="application/msword",
        words="an old Word document (.doc)",
        parts=("WordDocument",),
        advice=_OLD.format(".docx"),
    ),
    ContainerFormat(
        format="ppt",
        media_type="application/vnd.ms-powerpoint",
        words="an old PowerPoint presentation (.ppt)",
        parts=("PowerPoint Document",),
        advice=_OLD.format(".pptx"),
    ),
    ContainerFormat(format="", media_type="", words="a Visio drawing", parts=("VisioDocument",)),
    ContainerFormat(format="", media_type="", words="a Publisher document", parts=("Quill",)),
)


def zip_format(path: Path, *, name: str) -> ContainerFormat:
    """Raises ExtractionError for what is damaged, needs a password, or is not read."""
    with Archive(path, name=name, limits=Limits()) as archive:
        stated, main = _stated_types(archive), _main_type(archive)
        names = archive.names
        manifest = archive.read_start("META-INF/manifest.xml", limit=TYPES_BYTES)
    if "application/vnd.oasis.opendocument" in stated and b"encryption-data" in manifest:
        raise needs_password(name)
    for told in (main, stated):
        for row in ZIP_FORMATS:
            if any(mark in told for mark in row.types):
                return _if_read(row, name=name)
    for row in ZIP_FORMATS:
        if any(part.startswith(row.parts) for part in names):
            return _if_read(row, name=name)
    suffix = Path(name).suffix.lower().removeprefix(".")
    if not names or suffix in DOCUMENT_EXTENSIONS:
        raise damaged(name, words="damaged: it is an archive without the parts of a document")
    advice = "Unpack it and upload the files in it."
    raise ExtractionError(f"{name} is an archive.", advice=advice, reason="unsupported", retires=True)


def ole2_format(path: Path, *, name: str) -> ContainerFormat:
    """Raises ExtractionError as `zip_format` does."""
    streams = _stream_names(path)
    if ENCRYPTED_STREAM in streams or (not streams and _holds_encrypted(path)):
        raise needs_password(name)
    for row in OLE2_FORMATS:
        if streams.intersection(row.parts):
            return _if_read(row, name=name)
    advice = "Save it as .docx, .xlsx or .pptx."
    raise ExtractionError(f"{name} is an old Office file.", advice=advice, reason="unsupported", retires=True)


def _if_read(row: ContainerFormat, *, name: str) -> ContainerFormat:
    if row.format in FORMATS:
        return row
    raise ExtractionError(f"{name} is {row.words}, which is not read.", advice=row.advice, reason="unsupported", retires=True)


def _stated_types(archive: Archive) -> str:
    """What the container says that it is: the content types of Office, the mimetype of OpenDocument and EPUB."""
    types = _office_types(archive)
    own = archive.read_start("mimetype", limit=MIMETYPE_BYTES)
    if not types and not own and (root := _ROOT_TYPE.search(archive.read_start("META-INF/manifest.xml", limit=TYPES_BYTES))):
        own = root[0]
    return types + " " + own.decode("utf-8", "ignore")


def _main_type(archive: Archive) -> str:
    """The content type of the part that an Office package says is its document; others may be named that are not there."""
    relations = _xml_start(archive, "_rels/.rels")
    documents = [row for row in _rows(relations, "Relationship") if row.get("Type", "").endswith(MAIN_PART)]
    targets = {"/" + row.get("Target", "").lstrip("/") for row in documents}
    types = _rows(_office_types(archive), "Override")
    return " ".join(row.get("ContentType", "") for row in types if row.get("PartName") in targets)


def _office_types(archive: Archive) -> str:
    return _xml_start(archive, "[Content_Types].xml")


def _xml_start(archive: Archive, part: str) -> str:
    start = archive.read_start(part, limit=TYPES_BYTES)
    return start.decode("utf-16" if start.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8", "ignore")


def _rows(xml: str, tag: str) -> list[dict[str, str]]:
    """The attributes of every element of that name. A package names few; it is read as it stands, whatever else is wrong with it."""
    found = (element[2] for element in _TAG.finditer(xml) if element[1] == tag)
    return [{name: double or single for name, double, single in _ATTRIBUTE.findall(attributes)} for attributes in found]


def _stream_names(path: Path) -> set[str]:
    """Of the container's root; empty when its directory cannot be read."""
    try:
        with olefile.OleFileIO(str(path)) as container:
            return {entry[0] for entry in container.listdir(streams=True, storages=True)}
    except Exception:  # a damaged container raises whatever its bytes led to
        return set()


def _holds_encrypted(path: Path) -> bool:
    with path.open("rb") as file:
        return ENCRYPTED_STREAM.encode("utf-16-le") in file.read(OLE2_SEARCHED_BYTES)
