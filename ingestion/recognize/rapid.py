"""RapidOCR, where Tesseract is not: its models come with its package. Slower, larger, and columns are read across."""

from typing import Any

import numpy as np
from PIL import Image

from ingestion.recognize.base import Line

# As with the other engines. Its threads wait by spinning: with two of them a page costs a third more of the processor.
ONE_THREAD = {f"EngineConfig.onnxruntime.{which}_op_num_threads": 1 for which in ("intra", "inter")}


class RapidReader:
    name = "rapidocr"

    def __init__(self) -> None:
        from rapidocr import RapidOCR

        self._read: Any = RapidOCR(params={"Global.log_level": "error", **ONE_THREAD})

    def turned(self, picture: Image.Image) -> int | None:
        """It turns lines and no pages: whoever reads badly tries the other ways."""
        return None

    def lines(self, picture: Image.Image) -> list[Line]:
        found = self._read(np.asarray(picture.convert("RGB"))[:, :, ::-1])
        if found.txts is None:
            return []
        rows = zip(found.boxes, found.txts, found.scores, strict=True)
        placed = sorted(_placed(box, text, float(score)) for box, text, score in rows)
        return [
            Line(text.strip(), block, score, max(1, len(text.split())))
            for block, (text, score) in zip(_blocks(placed), ((row[3], row[4]) for row in placed), strict=True)
            if text.strip()
        ]


def _placed(box: Any, text: str, score: float) -> tuple[float, float, float, str, float]:
    """(middle from above, left, height, text, score): in the order of reading."""
    return float(box[:, 1].mean()), float(box[:, 0].min()), float(np.ptp(box[:, 1])), text, score


def _blocks(placed: list[tuple[float, float, float, str, float]]) -> list[int]:
    """A gap of more than a line begins another block."""
    numbers, block = [], 0
    for index, row in enumerate(placed):
        if index and row[0] - placed[index - 1][0] > 2.2 * max(row[2], 1.0):
            block += 1
        numbers.append(block)
    return numbers
