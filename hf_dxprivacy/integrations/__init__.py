"""Adapters for other tools: Presidio, spaCy, datatrove, scikit-learn."""
