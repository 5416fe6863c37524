"""`python -m quercus` is `quercus`."""

import sys

from quercus.cli import main

if __name__ == "__main__":
    sys.exit(main())
