"""The demo page as a process that can be asked what it still holds of a text.

For every line on standard input it prints how many objects in memory hold that text.
"""

import gc
import sys

from hf_dxprivacy.report.demo import demo_page, serve


def holders(text: str) -> list[object]:
    """Return the containers in this process that hold a text, by itself or in a longer one."""
    gc.collect()
    found: list[object] = []
    for held in gc.get_objects():
        try:
            if not isinstance(held, dict | list | tuple | set):
                continue
            values = [*(held.values() if isinstance(held, dict) else held)]
        except RuntimeError:
            # Another thread changes it; the next question meets it again.
            values = [text]
        except Exception:
            # A weak reference to what is gone, or a container that cannot be listed.
            continue
        strings = [v for v in values if isinstance(v, str)]
        strings += [v.decode("latin-1") for v in values if isinstance(v, bytes | bytearray)]
        if any(text in value for value in strings):
            found.append(held)
    return found


def main() -> None:
    """Serve the page at the port that is named first, and answer."""
    page = demo_page()
    print(serve(page, port=int(sys.argv[1])), flush=True)
    for line in sys.stdin:
        # The line itself is held by this frame alone, which is no container.
        print(len(holders(line.strip())), flush=True)


if __name__ == "__main__":
    main()
