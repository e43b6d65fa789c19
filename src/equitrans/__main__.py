"""The command line as ``python -m equitrans``."""

import sys

from equitrans.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
