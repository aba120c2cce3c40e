"""The web page of ``hf-dxprivacy demo``."""
