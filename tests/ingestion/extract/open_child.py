"""A child on a kernel without Landlock. `python -m tests.ingestion.extract.open_child …`"""

import sys

from ingestion.extract import child, landlock

if __name__ == "__main__":
    landlock.interface = lambda: (0, "this kernel has no Landlock (Function not implemented)")
    child.main(sys.argv[1:])
