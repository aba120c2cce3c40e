"""Files of text data, row batch by row batch, in and out without loss.

Knows no privatizer: cells go out, other cells come in, and everything else stays as it is.
"""

from hf_dxprivacy.files.base import Batch, Cell, Columns, Reader, Sink
from hf_dxprivacy.files.formats import (
    FORMATS,
    STANDARD,
    Input,
    check_ending,
    describe_file,
    dialect_of,
    format_of,
    is_dataset,
    is_packed,
    open_reader,
)
from hf_dxprivacy.files.output import check_output, replacing, standard_output
from hf_dxprivacy.files.sinks import check_conversion, open_sink
from hf_dxprivacy.files.txt import read_words

__all__ = [
    "FORMATS",
    "STANDARD",
    "Batch",
    "Cell",
    "Columns",
    "Input",
    "Reader",
    "Sink",
    "check_conversion",
    "check_ending",
    "check_output",
    "describe_file",
    "dialect_of",
    "format_of",
    "is_dataset",
    "is_packed",
    "open_reader",
    "open_sink",
    "read_words",
    "replacing",
    "standard_output",
]
