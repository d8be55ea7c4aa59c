"""Office equations (OMML) as LaTeX, as far as they are simple: what is not known is written as its text, never dropped."""

import unicodedata

from ingestion.extract.xml_tree import Element

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
MAX_DEPTH = 60

_OPERATORS = {
    "∑": r"\sum", "∏": r"\prod", "∐": r"\coprod", "∫": r"\int", "∬": r"\iint", "∭": r"\iiint", "∮": r"\oint", "∯": r"\oiint",
    "∰": r"\oiiint", "⋃": r"\bigcup", "⋂": r"\bigcap", "⋀": r"\bigwedge", "⋁": r"\bigvee",
}  # fmt: skip
_SYMBOLS = {
    "∞": r"\infty", "×": r"\times", "÷": r"\div", "±": r"\pm", "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx",
    "→": r"\rightarrow", "←": r"\leftarrow", "⇒": r"\Rightarrow", "∈": r"\in", "∉": r"\notin", "∩": r"\cap", "∪": r"\cup",
    "∂": r"\partial", "∇": r"\nabla", "∀": r"\forall", "∃": r"\exists", "·": r"\cdot", "⋅": r"\cdot", "⊂": r"\subset",
    "⊆": r"\subseteq", "∧": r"\wedge", "∨": r"\vee", "…": r"\ldots", "⋯": r"\cdots", "∅": r"\emptyset", "∝": r"\propto", "≡": r"\equiv",
}  # fmt: skip
_ACCENTS = {"̂": "hat", "̃": "tilde", "̇": "dot", "̈": "ddot", "̅": "bar", "⃗": "vec", "́": "acute", "̀": "grave", "̌": "check"}
_SKIPPED = frozenset(f"{M}{name}" for name in ("ctrlPr", "rPr", "sSubPr", "fPr", "naryPr", "dPr", "radPr", "mPr", "oMathParaPr"))


def latex(element: Element, depth: int = 0) -> str:
    """The content of an equation, without dollar signs."""
    if depth > MAX_DEPTH:
        return "".join(each.text or "" for each in element.iter(f"{M}t"))
    return " ".join("".join(_one(child, depth + 1) for child in element).split()) if depth == 0 else _inner(element, depth)


def _inner(element: Element | None, depth: int) -> str:
    if element is None:
        return ""
    if depth > MAX_DEPTH:
        return "".join(each.text or "" for each in element.iter(f"{M}t"))
    return "".join(_one(child, depth + 1) for child in element)


def _one(element: Element, depth: int) -> str:
    if not isinstance(element.tag, str) or element.tag in _SKIPPED:
        return ""
    name = element.tag.rpartition("}")[2]

    def part(tag: str) -> str:
        return _inner(element.find(f"{M}{tag}"), depth)

    match name:
        case "t":
            return _text(element.text or "")
        case "f":
            kind = element.find(f"{M}fPr/{M}type")
            if kind is not None and kind.get(f"{M}val") == "noBar":
                return rf"\binom{{{part('num')}}}{{{part('den')}}}"
            return rf"\frac{{{part('num')}}}{{{part('den')}}}"
        case "sSup":
            return f"{part('e')}^{{{part('sup')}}}"
        case "sSub":
            return f"{part('e')}_{{{part('sub')}}}"
        case "sSubSup":
            return f"{part('e')}_{{{part('sub')}}}^{{{part('sup')}}}"
        case "sPre":
            return f"{{}}_{{{part('sub')}}}^{{{part('sup')}}}{part('e')}"
        case "rad":
            root = part("deg")
            return rf"\sqrt[{root}]{{{part('e')}}}" if root else rf"\sqrt{{{part('e')}}}"
        case "nary":
            return _nary(element, part("sub"), part("sup"), part("e"))
        case "d":
            return _delimited(element, depth)
        case "func":
            return f"{_function(part('fName'))}{part('e')}"
        case "limLow":
            return f"{_function(part('e'))}_{{{part('lim')}}}"
        case "limUpp":
            return f"{_function(part('e'))}^{{{part('lim')}}}"
        case "acc":
            char = _property(element, "accPr", "chr") or "̂"
            return rf"\{_ACCENTS.get(char, 'hat')}{{{part('e')}}}"
        case "bar":
            return rf"\overline{{{part('e')}}}"
        case "m":
            rows = (" & ".join(_inner(cell, depth) for cell in row.findall(f"{M}e")) for row in element.findall(f"{M}mr"))
            return r"\begin{matrix} " + r" \\ ".join(rows) + r" \end{matrix}"
        case "eqArr":
            return r" \\ ".join(_inner(line, depth) for line in element.findall(f"{M}e"))
    return _inner(element, depth)


def _nary(element: Element, low: str, high: str, body: str) -> str:
    char = _property(element, "naryPr", "chr") or "∫"
    return f"{_OPERATORS.get(char, char)}{f'_{{{low}}}' if low else ''}{f'^{{{high}}}' if high else ''} {body}"


def _delimited(element: Element, depth: int) -> str:
    begin = _property(element, "dPr", "begChr")
    end = _property(element, "dPr", "endChr")
    inner = ", ".join(_inner(each, depth) for each in element.findall(f"{M}e"))
    return f"{'(' if begin is None else begin}{inner}{')' if end is None else end}"


def _function(name: str) -> str:
    return f"\\{name.strip()}" if name.strip().isascii() and name.strip().isalpha() else name


def _property(element: Element, group: str, name: str) -> str | None:
    found = element.find(f"{M}{group}/{M}{name}")
    return None if found is None else found.get(f"{M}val", "")


def _text(text: str) -> str:
    return "".join(_symbol(char) for char in unicodedata.normalize("NFKC", text))


def _symbol(char: str) -> str:
    if (known := _SYMBOLS.get(char)) is not None:
        return f" {known} "
    if "\u0391" <= char <= "\u03f6":
        name = unicodedata.name(char, "").lower()
        if name.startswith("greek small letter "):
            return f" \\{name.removeprefix('greek small letter ').partition(' ')[0].replace('lamda', 'lambda')} "
        if name.startswith("greek capital letter "):
            return f" \\{name.removeprefix('greek capital letter ').partition(' ')[0].replace('lamda', 'lambda').capitalize()} "
    return char
