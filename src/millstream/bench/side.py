"""One side of a comparison in a process of its own, pinned to one core, so that its memory can be told."""

from __future__ import annotations

import json
import os
import resource
import sys

# One thread each, before the libraries are loaded.
for _name in ("OMP_NUM_THREADS", "ARROW_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


def main(name: str, side: str, rows: int, warm: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
    import pyarrow as pa

    pa.set_cpu_count(1)
    from millstream.bench.local import SIDES

    work = SIDES[name][side]
    if warm:
        work(warm)  # compiles kernels, loads libraries
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = work(rows)
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    result["base_mb"] = before // 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
