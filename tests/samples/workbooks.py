"""Workbooks made by code: what programs write, and what only an enemy writes."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tests.samples.containers import zip_file

TRANSITIONAL = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/spreadsheetml/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_STATES = ("visible", "hidden")
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
)


def column_name(place: int) -> str:
    name = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        name = chr(65 + rest) + name
    return name


def cell(reference: str, value: Any, *, style: int = 0) -> str:
    """A cell's element; text in line, numbers by their style."""
    if isinstance(value, bool):
        return f'<c r="{reference}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, (int, float)):
        return f'<c r="{reference}" s="{style}"><v>{value}</v></c>'
    return f'<c r="{reference}" t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'


def sheet_data(rows: Sequence[Sequence[Any]], *, styles: Mapping[int, int] | None = None) -> str:
    """`None` makes no cell; `styles` are by column."""
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = [
            cell(f"{column_name(at)}{number}", value, style=(styles or {}).get(at, 0)) for at, value in enumerate(row) if value is not None
        ]
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    return f"<sheetData>{''.join(lines)}</sheetData>"


def workbook(
    sheets: Mapping[str, str | Sequence[Sequence[Any]]],
    *,
    formats: Sequence[str] = (),
    hidden: Sequence[str] = (),
    from_1904: bool = False,
    namespace: str = TRANSITIONAL,
    texts: str = "",
    parts: Mapping[str, bytes] | None = None,
) -> bytes:
    """An .xlsx of sheets by name, each as rows or as the XML inside of its element. Style n + 1 shows numbers by `formats[n]`; `texts` are
    the items of the shared texts; `parts` are added, or stand in the place of those that were made."""
    entries = "".join(
        f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}" state="{_STATES[name in hidden]}"/>'
        for number, name in enumerate(sheets, start=1)
    )
    links = "".join(
        f'<Relationship Id="rId{number}" Type="{LINKS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number, _ in enumerate(sheets, start=1)
    )
    links += f'<Relationship Id="s" Type="{LINKS}/styles" Target="styles.xml"/>'
    links += f'<Relationship Id="t" Type="{LINKS}/sharedStrings" Target="/xl/sharedStrings.xml"/>'
    codes = "".join(f'<numFmt numFmtId="{200 + place}" formatCode="{escape(code)}"/>' for place, code in enumerate(formats))
    styles = "".join(f'<xf numFmtId="{200 + place}"/>' for place, _ in enumerate(formats))
    made = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": f'<Relationships><Relationship Id="r" Type="{LINKS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{namespace}" xmlns:r="{LINKS}"><workbookPr date1904="{int(from_1904)}"/>'
        f"<sheets>{entries}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f"<Relationships>{links}</Relationships>",
        "xl/styles.xml": f'<styleSheet xmlns="{namespace}"><numFmts>{codes}</numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs>'
        f'<cellXfs><xf numFmtId="0"/>{styles}</cellXfs></styleSheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{namespace}">{texts}</sst>',
    }
    for number, content in enumerate(sheets.values(), start=1):
        inside = content if isinstance(content, str) else sheet_data(content)
        made[f"xl/worksheets/sheet{number}.xml"] = f'<worksheet xmlns="{namespace}" xmlns:r="{LINKS}">{inside}</worksheet>'
    return zip_file({name: content.encode() for name, content in made.items()} | dict(parts or {}))
