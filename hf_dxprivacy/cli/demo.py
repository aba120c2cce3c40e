"""The verb demo: a local page."""

import argparse
import sys
import threading

from hf_dxprivacy.cli.arguments import at_least

OPEN_TO_OTHERS = (
    "warning: {host} is not the loopback address: others may reach this page. What they paste "
    "travels unencrypted, and the host of the page could read it"
)


def demo_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="to listen at (%(default)s)")
    add("--port", type=at_least(1), metavar="N", help="to listen at (a free one from 7860 on)")
    add(
        "--space",
        action="append",
        metavar="NAME",
        help="a built-in space, a folder that holds one, or a repository on the Hub; repeat it for "
        "several (all built-in ones)",
    )


def demo(args: argparse.Namespace) -> None:
    """Show a page in the browser: paste a text, move epsilon, see what a release would be.

      hf-dxprivacy demo
      hf-dxprivacy demo --space ./glove --space english --port 8000

    The page is served on this machine and can be reached from this machine only, unless --host says
    otherwise. It sends nothing anywhere, logs no text and keeps none. Ctrl-C ends it.

    Raises:
        DxPrivacyError: If there is no such space, or Gradio is missing.
        OSError: If the port is in use.
    """
    from hf_dxprivacy.report.demo import demo_page, is_loopback, serve

    if not is_loopback(args.host):
        print(f"hf-dxprivacy: {OPEN_TO_OTHERS.format(host=args.host)}", file=sys.stderr)
    print(f"Open {serve(demo_page(args.space or ()), args.host, args.port)}", flush=True)
    threading.Event().wait()
