"""The demo page as a Space on the Hub: the built-in spaces, for everybody who opens it."""

import os
import threading

from hf_dxprivacy.page.demo import demo_page, serve

if __name__ == "__main__":
    port = int(os.environ.get("PORT", "7860"))
    host = os.environ.get("HOST", "0.0.0.0")
    # The name by which browsers ask for it, without which their requests are refused.
    names = [name for name in os.environ.get("SPACE_HOST", "").split(",") if name]
    print(serve(demo_page(), host, port, names), flush=True)
    threading.Event().wait()
