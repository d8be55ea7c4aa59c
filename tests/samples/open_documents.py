"""OpenDocument spreadsheets made by code."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tests.samples.containers import zip_file

SPREADSHEET = "application/vnd.oasis.opendocument.spreadsheet"
_STYLES = ("seen", "hid")
_NAMES = "".join(f' xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{prefix}:1.0"' for prefix in ("office", "table", "text", "style"))


def spreadsheet(sheets: Mapping[str, str | Sequence[Sequence[Any]]], *, hidden: Sequence[str] = ()) -> bytes:
    """An .ods of sheets by name, each as the XML inside of it or as rows of numbers, texts, None and (value type, value, text shown)."""
    tables = "".join(
        f'<table:table table:name="{escape(name)}" table:style-name="{_STYLES[name in hidden]}">'
        f"{content if isinstance(content, str) else ''.join(map(row, content))}</table:table>"
        for name, content in sheets.items()
    )
    styles = "".join(
        f'<style:style style:name="{name}"><style:table-properties table:display="{shown}"/></style:style>'
        for name, shown in (("hid", "false"), ("seen", "true"))
    )
    content = (
        f"<office:document-content{_NAMES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body></office:document-content>"
    )
    return zip_file({"mimetype": SPREADSHEET.encode(), "content.xml": content.encode()})


def row(cells: Sequence[Any], *, times: int = 1) -> str:
    repeated = f' table:number-rows-repeated="{times}"' if times > 1 else ""
    return f"<table:table-row{repeated}>{''.join(map(cell, cells))}</table:table-row>"


def cell(value: Any, *, more: str = "") -> str:
    if value is None:
        return f"<table:table-cell{more}/>"
    if isinstance(value, tuple):
        kind, stated, shown = value
        name = {"float": "value", "percentage": "value", "currency": "value"}.get(kind, f"{kind}-value")
        more += f' office:value-type="{kind}" office:{name}="{stated}"'
        return f"<table:table-cell{more}><text:p>{escape(shown)}</text:p></table:table-cell>"
    if isinstance(value, (int, float)):
        return cell(("float", value, str(value)), more=more)
    return f'<table:table-cell{more} office:value-type="string"><text:p>{escape(str(value))}</text:p></table:table-cell>'
