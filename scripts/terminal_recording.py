"""Draw what the command line shows in a terminal: docs/images/terminal.svg, from a real run.

python scripts/terminal_recording.py [FILE]
"""

import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from fcntl import ioctl
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

FILE = Path(__file__).resolve().parents[1] / "docs" / "images" / "terminal.svg"
COLUMNS, ROWS = 100, 24
REVIEWS = (
    "The soup was cold and the waiter rude.",
    "A wonderful little restaurant: fresh fish, friendly waiters and a fair bill.",
    "We waited an hour for the bread, and the cook shouted at us.",
)
COMMANDS = (
    "hf-dxprivacy privatise reviews.csv",
    "hf-dxprivacy privatize reviews.csv --output released.csv --mechanism hierarchical",
    "hf-dxprivacy calibrate english --mechanism hierarchical --epsilon 1 1.5 2.2",
    "hf-dxprivacy privatize reviews.csv --output released.csv --mechanism hierarchical "
    "--epsilon 1.5",
    "head -4 released.csv",
)


def shown(command: str, folder: str) -> str:
    """Run a command in a terminal of its own, and return what is seen when it has ended."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    program, *arguments = shlex.split(command)
    python = [sys.executable, "-m", "hf_dxprivacy"]
    words = [*(python if program == "hf-dxprivacy" else [program]), *arguments]
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    process = subprocess.Popen(words, stdout=theirs, stderr=theirs, cwd=folder, env=environment)
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 1 << 16):
            seen += part
    except OSError:  # the program has ended
        os.close(ours)
    process.wait()
    lines = seen.decode().replace("\r\n", "\n").rstrip("\n").split("\n")
    # What a bar has drawn before is drawn over.
    return "\n".join(line.rpartition("\r")[2] for line in lines)


def main(file: Path) -> None:
    """Run the commands on made-up reviews, and draw what is seen."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = "".join(f'"{REVIEWS[at % len(REVIEWS)]}",{at % 5 + 1}\n' for at in range(200))
        (Path(folder) / "reviews.csv").write_text(f"text,stars\n{rows}")
        for command in COMMANDS:
            console.print(Text("$ ", style="bold green") + Text(command, style="bold"))
            # Of the guarantee the three plain lines; the details are in the README.
            text = shown(command, folder).strip("\n").partition("\033[2mDetails:")[0].rstrip("\n")
            console.print(Text.from_ansi(text), end="\n\n")
    drawn = console.export_svg(title="hf-dxprivacy", theme=MONOKAI, unique_id="terminal")
    # Nothing is fetched by who looks at it.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    drawn = drawn.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    file.write_text("\n".join(line.rstrip() for line in drawn.splitlines()) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
