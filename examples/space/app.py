"""The demo page as a Space on the Hub: the built-in spaces, for everybody who opens it."""

import os
import threading

from hf_dxprivacy.report.page import demo_page, serve

if __name__ == "__main__":
    port = int(os.environ.get("GRADIO_SERVER_PORT", "7860"))
    print(serve(demo_page(), os.environ.get("GRADIO_SERVER_NAME", "0.0.0.0"), port), flush=True)
    threading.Event().wait()
