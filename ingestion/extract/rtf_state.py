"""What holds in a group of an RTF file, and what its tables of fonts and styles say."""

from dataclasses import dataclass, field
from enum import Enum, auto

# What a font's \fcharset says of the bytes in it.
CHARSETS = {
    0: "", 1: "", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "big5", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250", 255: "cp437",
}  # fmt: skip
PAGES = {"ansi": "cp1252", "mac": "mac_roman", "pc": "cp437", "pca": "cp850"}


class Into(Enum):
    """Where the text of a group goes."""

    BODY = auto()
    NOWHERE = auto()
    FONTS = auto()
    STYLES = auto()
    INFO = auto()
    LABEL = auto()
    FIELD = auto()
    NOTE = auto()
    HEADER = auto()
    FOOTER = auto()


# Groups whose text is none of the document's, though they are not marked as such.
_UNSEEN = (
    "colortbl pict object objdata filetbl listtable listoverridetable revtbl rsidtbl shprslt nonesttables xe tc tcn rxe bkmkstart bkmkend "
    "private template fontemb datafield themedata colorschememapping latentstyles datastore xmlnstbl generator atnid atnauthor atndate "
    "annotation operator nonshppict falt panose mmathPr upr"
)
UNSEEN = frozenset(_UNSEEN.split())
# Marked as to be passed over by who does not know them, and known.
_KNOWN = "shppict shpinst shptxt fldinst ud moMath mr momathPara listtext pntext htmltag footnote result"
KNOWN = frozenset(_KNOWN.split())
INTO = {
    "fonttbl": Into.FONTS, "stylesheet": Into.STYLES, "listtext": Into.LABEL, "pntext": Into.LABEL, "fldinst": Into.FIELD,
    "footnote": Into.NOTE, "header": Into.HEADER, "headerl": Into.HEADER, "headerr": Into.HEADER, "headerf": Into.HEADER,
    "footer": Into.FOOTER, "footerl": Into.FOOTER, "footerr": Into.FOOTER, "footerf": Into.FOOTER,
}  # fmt: skip
INFO_FIELDS = frozenset(["title", "author", "subject", "keywords", "doccomm"])


@dataclass(slots=True)
class State:
    """Of one group; a group begins with its parent's."""

    into: Into = Into.BODY
    bold: bool = False
    italic: bool = False
    hidden: bool = False
    font: int | None = None
    skipped: int = 1
    """How many characters stand after \\u for readers without Unicode."""
    info: str = ""
    is_drawing: bool = False
    """In a shape, whose properties are no text until its \\shptxt."""
    is_note: bool = False
    target: str = ""


@dataclass(slots=True)
class Paragraph:
    """Properties until the next \\pard."""

    style: int | None = None
    level: int | None = None
    in_table: bool = False
    nesting: int = 1


@dataclass(slots=True)
class CellShape:
    across: str = ""
    """`first` of cells that are merged over columns, `next` for the others."""
    down: str = ""


@dataclass(slots=True)
class Tables:
    """What the header of the file defines."""

    encoding: str = "cp1252"
    fonts: dict[int, str] = field(default_factory=dict)
    styles: dict[int, str] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)
    info: dict[str, str] = field(default_factory=dict)
    default_font: int | None = None
