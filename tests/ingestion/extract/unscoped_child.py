"""A hostile child on a kernel whose Landlock lets signals out. `python -m tests.ingestion.extract.unscoped_child …`"""

import sys

from ingestion.extract import child, landlock
from ingestion.extract.formats import EXTRACTORS
from tests.ingestion.extract.hostile import HostileExtractor

if __name__ == "__main__":
    landlock.SCOPES_SINCE = 99
    EXTRACTORS._loaded["text"] = HostileExtractor
    child.main(sys.argv[1:])
