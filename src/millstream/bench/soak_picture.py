"""The picture of a soak: memory, state, micro-batches and the checkpoint over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.bench.soak import Verdict


def draw(verdict: Verdict, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    samples, settled = verdict.samples, verdict.settled()
    minutes = [s.seconds / 60 for s in samples]
    figure, (memory, state, batch, disk) = plt.subplots(4, 1, figsize=(9, 10), sharex=True, constrained_layout=True)
    kinds = [("JVM", "jvm_mb"), ("Python workers", "workers_mb"), ("driver", "driver_mb")]
    memory.stackplot(minutes, *([getattr(s, field) for s in samples] for _, field in kinds), labels=[name for name, _ in kinds], alpha=0.8)
    word = "steady" if verdict.steady else "not steady"
    memory.set_title(f"memory is {word}: {verdict.growth(lambda s: s.memory_mb):+.1%} after the warm-up (grey)", loc="left", fontsize=10)
    memory.set_ylabel("memory (PSS), MB")
    state.plot(minutes, [s.state_rows / 1000 for s in samples], color="tab:green")
    state.set_ylabel("state, thousand tuples")
    batch.plot(minutes, [s.batch_seconds for s in samples], ".", markersize=3, color="tab:red")
    batch.set_ylabel("micro-batch, s")
    disk.plot(minutes, [s.checkpoint_mb for s in samples], color="tab:purple", label="MB")
    disk.plot(minutes, [s.checkpoint_files for s in samples], color="tab:gray", label="files")
    disk.set_ylabel("checkpoint")
    disk.set_xlabel("minutes")
    for axes in (memory, state, batch, disk):
        axes.set_ylim(bottom=0)
        axes.axvspan(0, settled[0].seconds / 60 if settled else 0, color="black", alpha=0.06)
        axes.grid(alpha=0.3)
    memory.legend(loc="lower right", fontsize=8)
    disk.legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)
