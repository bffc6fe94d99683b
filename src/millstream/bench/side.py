"""One side of a comparison in a process of its own, so that its memory can be told."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

from millstream.bench.registry import find


def main(name: str, side: str, rows: int, folder: str) -> None:
    benchmark = find(name)
    if benchmark.one_core:
        # One thread each, before the libraries are loaded.
        for variable in ("OMP_NUM_THREADS", "ARROW_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(variable, "1")
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
        import pyarrow as pa

        pa.set_cpu_count(1)
    print(json.dumps(import_module(benchmark.module).run(name, side, rows, folder)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
