"""Pictures as recognition wants them: one frame, grey, upright by what the camera wrote, neither tiny nor huge."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, ImageOps

from config.errors import ExtractionError

FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")
# A0 at 300 dpi has 140 million; a picture of this many takes 400 MB in colour.
MAX_PIXELS = 120_000_000
# Print is read best at about 300 dpi, where A4 has 8.7 million pixels and A3 17.
MOST_READ = 25_000_000
# Shorter than this on its long side, letters of a screenshot are too small for the engines.
SMALL_SIDE = 1_600
SHOWN_SIDE = 1_568  # what vision models look at; more is scaled down by them, and paid for


@contextmanager
def opened(path: Path, *, name: str) -> Iterator[Image.Image]:
    """The file with nothing decoded yet. Raises ExtractionError, also for what goes wrong inside the block: a damaged file shows late."""
    Image.MAX_IMAGE_PIXELS = None  # ours is checked before anything is decoded, and says what to do
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=FORMATS) as picture:
                yield picture
    except ExtractionError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, TypeError, OverflowError) as error:  # what Pillow raises for damage
        happened = f"{name} is damaged: the picture cannot be decoded ({str(error)[:100] or type(error).__name__})."
        raise ExtractionError(happened, advice="Save it again.", reason="damaged", retires=True) from error


def check_size(picture: Image.Image, *, name: str) -> None:
    width, height = picture.size
    if width * height > MAX_PIXELS:
        happened = f"{name} has {width:,} × {height:,} pixels, more than the {MAX_PIXELS:,} that are read."
        raise ExtractionError(happened, advice="Save it smaller.", reason="too_large", retires=True)


def grey_frame(path: Path, number: int, *, name: str) -> Image.Image:
    """Frame `number`, from 1, ready to be read."""
    with opened(path, name=name) as picture:
        return fitted(_decoded(picture, number, name=name).convert("L"))


def shown_frame(path: Path, number: int, *, name: str) -> bytes:
    """The frame as a JPEG for a vision model."""
    with opened(path, name=name) as picture:
        frame = _decoded(picture, number, name=name).convert("RGB")
        frame.thumbnail((SHOWN_SIDE, SHOWN_SIDE))
        stored = io.BytesIO()
        frame.save(stored, "JPEG", quality=85)
        return stored.getvalue()


def fitted(picture: Image.Image) -> Image.Image:
    """Scaled to where print is read best."""
    pixels, side = picture.width * picture.height, max(picture.size)
    if pixels > MOST_READ:
        scale = (MOST_READ / pixels) ** 0.5
    elif 0 < side < SMALL_SIDE:
        scale = min(3.0, 2 * SMALL_SIDE / side)
    else:
        return picture
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)


def _decoded(picture: Image.Image, number: int, *, name: str) -> Image.Image:
    if number > 1:
        picture.seek(number - 1)
    check_size(picture, name=name)
    if picture.format in ("JPEG", "MPO") and picture.width * picture.height > 4 * MOST_READ:
        picture.draft(None, (picture.width // 2, picture.height // 2))  # decoded at half its size: a quarter of the memory
    frame = ImageOps.exif_transpose(picture)
    if frame.mode in ("I;16", "I;16B", "I;16L", "I", "F"):
        return _scaled_down(frame)
    if frame.mode in ("RGBA", "LA", "PA") or "transparency" in frame.info:
        # Print on nothing is print on white.
        layer = frame.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return frame


def _scaled_down(frame: Image.Image) -> Image.Image:
    """More than eight bits a pixel as eight, from darkest to lightest."""
    deep = frame.convert("F")
    low, high = deep.getextrema()
    factor = 255.0 / (high - low) if high > low else 0.0
    return deep.point(lambda value: value * factor - low * factor).convert("L")
