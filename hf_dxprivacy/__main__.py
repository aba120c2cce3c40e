"""The program, also as ``python -m hf_dxprivacy``."""

import signal
import sys

# Ctrl-C while modules are imported ends the program as it does others, without a traceback; the
# handlers of `main` follow.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from hf_dxprivacy.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
