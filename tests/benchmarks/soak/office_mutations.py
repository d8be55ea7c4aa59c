"""Office files, books and messages that are wrong in a place that matters: bytes and words of sound ones, also inside their containers."""

import random
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from functools import cache, partial
from io import BytesIO

from tests.samples.books import book, odf, rtf
from tests.samples.messages import message, ole2
from tests.samples.office import cell, paragraph, shape, slides, table, word

PROSE = "The oak lectern in the reading room is polished with beeswax every spring."
PIECES = (
    *(b"<", b">", b"&", b'"', b"\\", b"{", b"}", b"\0", b"\xff\xfe", b"-1", b"0", b"99999999999", b"", b"</w:p>", b'w:val=""', b"]]>"),
    *(b"\\u-99999999", b"\\ansicpg0 ", b"\\ansicpg99999 ", b"\\bin99", b"\\uc9", b"charset=none", b"=?x?b?", b"<!DOCTYPE a [", b"&#0;"),
)
SHARE_OF_CONTAINERS = 0.2  # of what is damaged in the container itself, and not in a part of it


@cache
def samples() -> dict[str, bytes]:
    numbered = paragraph(PROSE, properties='<w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr>')
    level = '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerRoman"/><w:lvlText w:val="%1.%2"/></w:lvl>'
    lists = f'<w:abstractNum w:abstractNumId="0">{level}</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    merged = table(["a", cell("b", columns=2)], [cell("c", merge="restart"), "d"], [cell("", merge=""), "e"])
    styles = '<w:style w:styleId="H"><w:name w:val="heading 1"/><w:basedOn w:val="H"/></w:style>'
    note = '<w:r><w:footnoteReference w:id="1"/></w:r>'
    notes = f'<w:footnote w:id="1">{paragraph("Proof.")}</w:footnote>'
    mail = EmailMessage()
    mail["From"], mail["Subject"], mail["Date"] = "Ada <ada@a.example>", "=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "Tue, 1 Dec 2026 09:30:00 +0100"
    mail.set_content(PROSE)
    mail.add_alternative(f"<p>{PROSE}</p>", subtype="html")
    mail.add_attachment(b"a,b", maintype="text", subtype="csv", filename="zahlen für alle.csv")
    inner = message({0x0037: "Inner", 0x1000: PROSE}, head=24)
    outlook = message({0x0037: "Offer", 0x1000: PROSE}, numbers={0x3FDE: 65001}, to=[("Bob", "b@b.example")], attachments=[{0x3701: inner}])
    spans = '<table:table-cell table:number-columns-spanned="2"><text:p>x</text:p></table:table-cell>'
    rows = f"<table:table><table:table-row>{spans}</table:table-row></table:table>"
    return {
        "docx": word(
            paragraph("One", style="H") + numbered + merged + paragraph(PROSE, runs=note), styles=styles, numbering=lists, footnotes=notes
        ),
        "pptx": slides(shape("One", kind="title", at=(0, 0)) + shape(PROSE, kind="body", index="1"), shape(PROSE)),
        "odt": odf(f'<text:h text:outline-level="1">One</text:h>{rows}<text:p>{PROSE}</text:p>'),
        "rtf": rtf(rf"\pard\s1 One\par\trowd\clvmgf\cellx1\cellx2\pard\intbl a\cell b\cell\row\pard {PROSE}{{\footnote x}}\u-10179?\par"),
        "epub": book({"a.xhtml": f"<h1>One</h1><p>{PROSE}</p>"}),
        "eml": mail.as_bytes(),
        "msg": ole2(outlook),
    }


def mutated(chance: random.Random, *, ending: str) -> bytes:
    sound = samples()[ending]
    if sound.startswith(b"PK") and chance.random() > SHARE_OF_CONTAINERS:
        return _damaged_inside(sound, chance)
    return _damaged(sound, chance)


MUTATIONS: dict[str, Callable[[random.Random], bytes]] = {
    ending: partial(mutated, ending=ending) for ending in ("docx", "pptx", "odt", "rtf", "epub", "eml", "msg")
}


def _damaged_inside(sound: bytes, chance: random.Random) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(sound)) as archive, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as copy:
        names = archive.namelist()
        chosen = set(chance.sample(names, min(len(names), chance.randint(1, 3))))
        for name in names:
            content = archive.read(name)
            copy.writestr(name, _damaged(content, chance) if name in chosen else content)
    return out.getvalue()


def _damaged(sound: bytes, chance: random.Random) -> bytes:
    content = bytearray(sound)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        if not content:
            break
        at, other = chance.randrange(len(content)), chance.randrange(len(content))
        match chance.randrange(5):
            case 0:
                content[at] = chance.randrange(256)
            case 1:
                content[at : at + chance.randrange(1, 9)] = chance.choice(PIECES)
            case 2:
                del content[at : at + chance.randrange(1, 200)]
            case 3:
                content[at:at] = content[other : other + chance.randrange(1, 300)]
            case 4 if chance.random() < 0.2:
                del content[at:]
    return bytes(content)
