"""Pictures: nothing is read here; each frame is a part that is left to text recognition."""

from pathlib import Path

from PIL import Image

from config.errors import ExtractionError
from ingestion.extract.base import Extracted, Limits, Part, Served
from ingestion.recognize.engines import INSTALL_PRINT
from ingestion.recognize.pictures import check_size, opened


class ImageExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        if limits.ocr != "described":
            refuse_pictures(f"{name} is a picture", limits=limits)
        with opened(data, name=name) as picture:
            check_size(picture, name=name)
            count = getattr(picture, "n_frames", 1) if picture.format == "TIFF" else 1  # an animation's frames are no pages
            kept = min(count, limits.max_pages)
            warnings = [f"Only the first {kept} of {count} pages were read."] if kept < count else []
            metadata = {"width": picture.width, "height": picture.height, **({"pages": count} if count > 1 else {})}
            media_type = Image.MIME.get("JPEG" if picture.format == "MPO" else picture.format or "", "image/png")
        return Extracted(
            markdown="",
            title=Path(name).stem,
            media_type=media_type,
            metadata=metadata,
            warnings=warnings,
            parts=[Part("picture", page=number) for number in range(1, kept + 1)],
        )


def refuse_pictures(happened: str, *, limits: Limits) -> None:
    """Raises ExtractionError where text is not recognized in pictures; `happened` begins its sentence."""
    if limits.ocr == "off":
        advice = "Set settings.ocr of the source to auto, or upload a version with text."
        raise ExtractionError(f"{happened}, and text recognition is off for this source.", advice=advice, reason="ocr_off", retires=True)
    if limits.ocr in ("missing", "described"):
        raise ExtractionError(f"{happened}, and no text recognition is installed here.", advice=INSTALL_PRINT, reason="no_engine")
