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


# Set, it is the number of threads instead of one.
THREADS = "HF_DXPRIVACY_TEST_THREADS"

Settings = dict[str, str]


def use_one_thread() -> None:
    """Give BLAS, OpenMP, torch and polars one thread, here and in processes that are started.

    Before they are imported. pytest-xdist runs as many tests at once as there are cores; with as
    many threads in each, they would wait for each other. `scripts/processors.py` asks for two.
    """
    for name in THREAD_VARIABLES:
        os.environ[name] = os.environ.get(THREADS, "1")


def as_processor(core: str = "", numpy: str = "", faiss: str = "", threads: int = 1) -> Settings:
    """Return the variables with which a process computes as another processor would.

    Args:
        core: One that OpenBLAS knows, such as "Haswell".
        numpy: What NumPy has to do without: "AVX-512", or "AVX2" for both.
        faiss: What faiss may use at the most, such as "generic".
        threads: Of every library.
    """
    settings = {**dict.fromkeys(THREAD_VARIABLES, str(threads)), THREADS: str(threads)}
    if core:
        settings["OPENBLAS_CORETYPE"] = core
    if without := features(numpy):
        settings["NPY_DISABLE_CPU_FEATURES"] = " ".join(without)
    if faiss:
        settings["FAISS_OPT_LEVEL"] = faiss
    return settings


def features(name: str) -> list[str]:
    """Return what NumPy calls a feature here; empty where the processor lacks it, or NumPy does.

    NumPy 2.4 has other names than versions before, and warns of names that it does not know.
    """
    try:
        from numpy._core import _multiarray_umath as core
    except ImportError:  # NumPy 1
        from numpy.core import _multiarray_umath as core
    known = {
        "AVX-512": ("AVX512", "X86_V4"),
        "AVX2": ("AVX512", "X86_V4", "AVX2", "FMA3", "X86_V3"),
    }
    return [
        feature
        for feature in core.__cpu_dispatch__
        if name and feature.startswith(known[name]) and core.__cpu_features__[feature]
    ]
