"""The demo page as a process that can be asked what it still holds of a text.

For every line on standard input it prints "yes" or "no": whether a session holds that text.
"""

import sys

from hf_dxprivacy.report.page import demo_page, serve


def main() -> None:
    """Serve the page at the port that is named first, and answer."""
    page = demo_page()
    print(serve(page, port=int(sys.argv[1])), flush=True)
    for line in sys.stdin:
        sessions = page.state_holder.session_data.values()
        held = [component for session in sessions for component in session.components]
        print("yes" if line.strip() in repr(held) else "no", flush=True)


if __name__ == "__main__":
    main()
