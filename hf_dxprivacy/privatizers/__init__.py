"""Privatizers: batches of rows in, batches of rows with released words out."""
