"""What tests ask of the machine that they run on: patience, and one thread each."""

import os

# Seconds until a process that never returns is given up. No test is about time, and a machine that
# is busy with other work may take ten times as long as an idle one.
PATIENCE = 900

THREAD_VARIABLES = (
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def use_one_thread() -> None:
    """Give BLAS, OpenMP, torch and polars one thread, here and in processes that are started.

    Before they are imported. pytest-xdist runs as many tests at once as there are cores; with as
    many threads in each, they would wait for each other.
    """
    for name in THREAD_VARIABLES:
        os.environ[name] = "1"
