"""Numbers as lists of office programs write them."""

_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"),
          (4, "iv"), (1, "i"))  # fmt: skip
_CYRILLIC = "абвгдежзиклмнопрстуфхцчшщэюя"
_CHINESE = "〇一二三四五六七八九"


def formatted(value: int, format: str) -> str:
    """A number as one of Word's number formats writes it; decimal where the format is a rare one."""
    if value < 1 or value > 100_000:
        return str(value)
    match format:
        case "lowerLetter" | "upperLetter":
            text = chr(ord("a") + (value - 1) % 26) * min(((value - 1) // 26 + 1), 20)
        case "lowerRoman" | "upperRoman":
            text = _roman(value) if value < 4_000 else str(value)
        case "russianLower" | "russianUpper":
            text = _CYRILLIC[(value - 1) % len(_CYRILLIC)] * min(((value - 1) // len(_CYRILLIC) + 1), 20)
        case "decimalZero":
            text = f"{value:02d}"
        case "chineseCounting" | "chineseCountingThousand" | "japaneseCounting" | "taiwaneseCounting" | "ideographDigital":
            text = _chinese(value)
        case "none" | "bullet":
            text = ""
        case _:
            text = str(value)
    return text.upper() if format.startswith(("upper", "russianUpper")) else text


def _roman(value: int) -> str:
    text = ""
    for step, letters in _ROMAN:
        count, value = divmod(value, step)
        text += letters * count
    return text


def _chinese(value: int) -> str:
    if value > 99:
        return "".join(_CHINESE[int(digit)] for digit in str(value))
    tens, ones = divmod(value, 10)
    return ("" if tens < 2 else _CHINESE[tens]) + ("十" if tens else "") + (_CHINESE[ones] if ones else "")
