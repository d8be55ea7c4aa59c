"""A sound file or two of each format but PDF, small, with as much of the format in it as its reader knows."""

import json
import zipfile
from io import BytesIO
from pathlib import Path

from tests.samples.office import cell as word_cell
from tests.samples.office import paragraph, shape, slides, table, word
from tests.samples.old_workbooks import old_workbook
from tests.samples.open_documents import spreadsheet
from tests.samples.parquets import parquet_file
from tests.samples.workbooks import sheet_data, workbook

ENDINGS = (
    *("csv", "tsv", "json", "jsonl", "ipynb", "xml", "rst", "yaml", "log", "md", "html", "rtf", "eml"),
    *("xlsx", "xls", "ods", "parquet", "docx", "pptx"),
)
ROWS = [["name", "day", "share", "open"], ["Größe", 45292, 0.25, True], ["two\nlines", 45293.5, -1, None], [None, 1, 1e9, False]]
MERGES = '<mergeCells><mergeCell ref="A2:B3"/><mergeCell ref="C1:D1"/></mergeCells>'
TEXTS = "<si><t>shared</t></si><si><r><t>rich</t></r><rPh><t>reading</t></rPh></si>"
CSV = "Sales of pens\n\nname;amount;remark\n" + "".join(f'Größe {number};{number},5;"said ""no"", twice\nover"\n' for number in range(40))
RST = """Title
=====

:Author: Ada

A *text* with ``code``, :func:`~a.b.c`, |sub| and a `link <http://e.org>`_. [1]_

- one

  #. nested

term
  meaning

.. note:: Careful

.. code-block:: python

   x = 1

+---+---+
| a | b |
+===+===+
| 1 | 2 |
+   +---+
|   | 3 |
+---+---+

.. csv-table:: Sold
   :header: "a", "b"

   1, 2

.. |sub| replace:: other
.. [1] Note.
"""
XML = (
    '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE catalog [<!ENTITY own "x">]><catalog xmlns:x="urn:x"><title>Pens</title>'
    + "".join(f'<pen id="{number}"><x:name>Größe &amp; {number}</x:name><price>1.5</price></pen>' for number in range(5))
    + "<p>Some <b>bold</b> &own; text</p><more><a><![CDATA[<p>raw</p><p>x</p>]]></a></more></catalog>"
)
MAIL = """From: a@e.org
To: b@e.org
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=x

--x
Content-Type: text/html

<p>Some words of a mail</p>
--x
Content-Type: text/csv
Content-Disposition: attachment; filename=a.csv

a,b
--x--
"""
CELLS = [["a", ("date", "2024-03-04", "04/03/2024")], ["b", ("time", "PT1H", "01:00")]]
SELECT = "SELECT i AS n, 'row ' || i AS t, DATE '2024-01-01' + i::INT AS d FROM range(200) t(i)"


def seeds(folder: Path) -> dict[str, bytes]:
    """By the names under which they are read; `folder` is for what libraries write only to files."""
    records = [{"name": f"pen {number}", "sold": number, "open": None} for number in range(5)]
    book = {"cells": [{"cell_type": "markdown", "source": ["# A"]}, {"cell_type": "code", "source": "1", "outputs": [{"text": "2"}]}]}
    sheet = sheet_data(ROWS, styles={1: 1, 2: 2}) + MERGES
    plain = {
        "a.csv": CSV.encode(),
        "b.csv": CSV.encode("utf-16"),
        "c.tsv": CSV.replace(";", "\t").encode("cp1252"),
        "a.json": json.dumps({"a": {"b": [1.5, "é" * 200, {"c": None}]}}).encode(),
        "b.json": json.dumps(records).encode(),
        "a.jsonl": "\n".join(map(json.dumps, records)).encode(),
        "a.ipynb": json.dumps(book).encode(),
        "a.xml": XML.encode(),
        "a.rst": RST.encode(),
        "a.yaml": b"a:\n  - b: 1\n    c: |\n      text\n",
        "a.log": b"2024-01-01 00:00:00 INFO started\n" * 50,
        "a.md": b"---\ntitle: T\n---\n# A\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx\n```\n",
        "a.html": b"<!doctype html><title>T</title><main><h1>A</h1><p>Some text of a page.</p><table><tr><th>a<td>b</table></main>",
        "a.rtf": rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 A;}}\f0 Hello \b bold\b0\par{\*\x y}\trowd\cellx1 a\cell\row \u8364 ?}",
        "a.eml": MAIL.encode(),
    }
    return plain | {
        "a.xlsx": workbook({"A": sheet, "B": ROWS[:1]}, formats=["dd.mm.yyyy hh:mm", '#,##0.0%;(0);"-"'], hidden=["B"], texts=TEXTS),
        "a.xls": old_workbook({"A": [["name", "n"], ["Größe", 45292.5], [True, 1]]}, formats={1: "dd.mm.yyyy"}, merged=[(0, 0, 0, 1)]),
        "a.ods": spreadsheet(
            {"A": [["a", ("date", "2024-03-04", "04/03/2024")], ["b", ("time", "PT1H", "01:00")]], "B": [[1]]}, hidden=["B"]
        ),
        "a.parquet": parquet_file(
            "SELECT i AS n, 'row ' || i AS t, DATE '2024-01-01' + i::INT AS d FROM range(200) t(i)", folder / "seed.parquet"
        ),
        "a.docx": word(paragraph("Heading", style="Heading1") + paragraph("Some words") + table([word_cell("a"), word_cell("b")])),
        "a.pptx": slides(shape("Some words of a slide", kind="title") + shape("and more")),
    }


def parts_of(content: bytes) -> dict[str, bytes]:
    """Of a ZIP container; {} for anything else."""
    if not content.startswith(b"PK"):
        return {}
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
