"""Symbol fonts: their characters come out in the private area U+F020–U+F0FF, where they mean nothing to a search."""

import re
from collections.abc import Callable

SYMBOLS = re.compile("[\uf020-\uf0ff]")
# Adobe's Symbol encoding, 0x20 to 0x7E and 0xA0 to 0xFE; a space where it has no character.
_GREEK = " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧ∆ΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼ "
_SIGNS = "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…│─↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭ "
_SYMBOL = {0xF020 + index: char for index, char in enumerate(_GREEK)} | {0xF0A0 + index: char for index, char in enumerate(_SIGNS)}
BULLET = "•"


def plain_symbols(text: str, *, font: Callable[[int], str]) -> str:
    """`font(index)` names the font of a character. Pictures of other symbol fonts are bullets at the start of a line and else nothing."""

    def plain(match: re.Match[str]) -> str:
        name = font(match.start()).lower()
        if "symbol" in name:
            return _SYMBOL.get(ord(match[0]), "")
        if "ding" in name or "web" in name or "awesome" in name or "icon" in name:
            return BULLET if not text[: match.start()].strip() else ""
        # A font that hides Latin letters there; else it is a bullet, by far the most frequent of them.
        code = ord(match[0]) - 0xF000
        return BULLET if match[0] == "\uf0b7" else bytes([code]).decode("cp1252", "ignore")

    return SYMBOLS.sub(plain, text)
