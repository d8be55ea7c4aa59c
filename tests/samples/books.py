"""OpenDocument files, RTF and EPUB books by code."""

from tests.samples.containers import zip_file

BASE = "urn:oasis:names:tc:opendocument:xmlns"
NAMES = ("office", "style", "text", "table", "presentation", "meta")
DECLARED = " ".join(f'xmlns:{name}="{BASE}:{name}:1.0"' for name in NAMES) + (
    f' xmlns:draw="{BASE}:drawing:1.0" xmlns:fo="{BASE}:xsl-fo-compatible:1.0" xmlns:svg="{BASE}:svg-compatible:1.0"'
    ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
FONTS = r"{\fonttbl{\f0\fcharset0 Times;}{\f1\fcharset204 Arial Cyr;}{\f2\fcharset128 Mincho;}}"
STYLES = r"{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 Kapitel;}{\s2 heading 2;}{\s3 Title;}{\*\cs9 Strong;}}"
ROOT = '<rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles>'
CONTAINER = f'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">{ROOT}</container>'
NAV = (
    '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body><nav epub:type="toc">{}</nav></body></html>'
)


def odf(body: str, *, kind: str = "text", automatic: str = "", template: str = "", meta: str = "", manifest: str = "") -> bytes:
    content = (
        f"<office:automatic-styles>{automatic}</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}></office:body>"
    )
    parts = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": f"<office:document-content {DECLARED}>{content}</office:document-content>",
        "styles.xml": f"<office:document-styles {DECLARED}>{template}</office:document-styles>",
        "meta.xml": f"<office:document-meta {DECLARED}><office:meta>{meta}</office:meta></office:document-meta>",
        "META-INF/manifest.xml": f"<manifest>{manifest}</manifest>",
    }
    return zip_file({name: text.encode() for name, text in parts.items()})


def rtf(body: str) -> bytes:
    return rf"{{\rtf1\ansi\ansicpg1252\deff0{FONTS}{STYLES}{body}}}".encode("latin-1")


def book(chapters: dict[str, str], *, spine: list[str] | None = None, extra: dict[str, str] | None = None, items: str = "") -> bytes:
    """Chapters by file name; `spine` are their names in the order of reading, "name/no" for one that is not linear."""
    manifest = "".join(f'<item id="{name}" href="text/{name}" media-type="application/xhtml+xml"/>' for name in chapters)
    order = "".join(
        f'<itemref idref="{name.partition("/")[0]}" linear="{name.partition("/")[2] or "yes"}"/>' for name in (spine or list(chapters))
    )
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<metadata><dc:title>On lecterns</dc:title>"
        f"<dc:creator>Ada</dc:creator><dc:language>en-GB</dc:language></metadata><manifest>{manifest}{items}</manifest>"
        f"<spine>{order}</spine></package>"
    )
    parts = {"mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER, "OPS/book.opf": opf}
    parts |= {f"OPS/text/{name}": f"<?xml version='1.0'?><html><body>{text}</body></html>" for name, text in chapters.items()}
    return zip_file({name: text.encode() for name, text in (parts | (extra or {})).items()})
