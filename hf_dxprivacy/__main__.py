"""Run the command line as ``python -m hf_dxprivacy``."""

import sys

from hf_dxprivacy.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
