"""How many threads faiss may use in this process."""

import faiss

from hf_dxprivacy import _threads


def limit_threads_in_worker() -> None:
    """Give faiss one thread if this process is a worker; cheap to call before every search."""
    _threads.limit_in_worker()
    if _threads.in_worker():
        # OpenMP keeps this number per thread, so it is set where the search is called.
        faiss.omp_set_num_threads(1)
