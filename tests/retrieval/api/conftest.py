import pytest


@pytest.fixture(autouse=True)
def _static_folder(settings, tmp_path) -> None:
    """Collected files exist only in an image; without a folder WhiteNoise warns, and warnings are errors."""
    settings.STATIC_ROOT = tmp_path
