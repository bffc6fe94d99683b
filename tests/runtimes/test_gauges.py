"""What operators have done and how long tuples wait for them: exact under a clock moved by hand, added up over buckets."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from millstream.core.block import Block
from millstream.graph.execution import Execution
from millstream.graph.explain import label_all
from millstream.operators.buffers import Buffer, Inputs
from millstream.runtime.gauges import Gauge, OperatorMetrics, Totals
from tests.oracle.buckets import Host
from tests.progress.live import SECOND, Live

STREAMS = "".join(f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE;" for name in "AB")
IN_ORDER = "SET execution.order = 'in-order';"
UNION = "SELECT k, ts FROM A WHERE k > 0 UNION ALL SELECT k, ts FROM B WHERE k > 0"


def by_kind(found: list[OperatorMetrics], kind: str) -> list[OperatorMetrics]:
    return [o for o in found if o.name.startswith(kind)]


class Watched(Live):
    """A run whose operators tell time by the same clock, and take none unless told."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.executor = self.run.stage.executor
        self.executor.book.now = self.clock.now

    def metrics(self) -> list[OperatorMetrics]:
        return self.executor.metrics(label_all(self.run.graph), self.clock.now())


def test_a_union_in_order_idle_waits_until_its_partner_speaks() -> None:
    live = Watched(IN_ORDER + STREAMS, UNION)
    live.push("A", (1, 0), (-1, 1), (2, 2))
    live.settle()
    live.settle(after=10)
    (union,) = by_kind(live.metrics(), "in-order union")
    assert (union.queue, union.peak, union.tuples_in, union.tuples_out) == (2, 2, 2, 0)
    assert (union.idle, union.latency) == (1.0, 10.0)
    live.push("B", (3, 5))
    live.settle()
    live.settle(after=10)  # the tuple of B waits for A
    (union,) = by_kind(live.metrics(), "in-order union")
    assert (union.queue, union.peak, union.tuples_in, union.tuples_out) == (1, 3, 3, 2)
    assert (union.idle, union.latency) == (1.0, 10.0)
    live.push("A", (4, 9))
    live.settle()
    live.settle(after=20)
    (union,) = by_kind(live.metrics(), "in-order union")
    assert (union.queue, union.tuples_out, union.idle) == (1, 3, 1.0)
    live.push("B", (5, 30))
    live.end()
    live.settle(after=60)  # nobody waits any more
    (union,) = by_kind(live.metrics(), "in-order union")
    assert (union.queue, union.tuples_in, union.selectivity, union.idle) == (0, 5, 1.0, 0.4)
    assert union.latency == pytest.approx((2 * 10 + 10 + 20 + 0) / 5)
    assert [o.selectivity for o in by_kind(live.metrics(), "select")] == [0.75, 1.0]


def test_time_in_queues_and_in_steps() -> None:
    """Three tuples, one at a time and breadth-first: each step takes a second, and the others wait."""
    latent = "".join(f"CREATE STREAM {name} (k BIGINT) TIMESTAMP LATENT;" for name in "AB")
    execution = Execution("breadth-first", 1)
    live = Watched(latent, "SELECT k FROM A WHERE k > 0 UNION ALL SELECT k FROM B WHERE k > 0", execution=execution)
    slow = next(o.number for o in by_kind(live.metrics(), "select"))
    live.executor.on_step = lambda number, tuples, _: live.clock.advance(SECOND * tuples if number == slow else 0)
    live.push("A", (1,), (2,), (3,))
    live.settle()
    select, _ = by_kind(live.metrics(), "select")
    (union,) = by_kind(live.metrics(), "union")
    assert (select.steps, select.busy, select.peak, select.queue) == (3, 3.0, 3, 0)
    assert select.latency == pytest.approx((1 + 2 + 3) / 3)
    assert (union.busy, union.peak) == (0.0, 3)
    assert union.latency == pytest.approx((2 + 1 + 0) / 3)  # in its buffer, while the selection went on
    assert (select.idle, union.idle) == (0.0, 0.0)


def test_the_rows_of_a_head_are_those_it_has_not_taken() -> None:
    buffer = Buffer()
    first = Inputs([buffer.head()])
    buffer.put(Block(pa.record_batch({"x": [1, 2, 3]})))
    second = Inputs([buffer.head()])
    buffer.put(Block(pa.record_batch({"x": [4, 5]})))
    assert (first.rows, second.rows) == (5, 2)
    first.heads[0].take(2)
    assert (first.rows, second.rows, first.taken.tuples, second.taken.tuples) == (3, 2, 2, 0)
    first.heads[0].leave()
    assert (first.rows, second.rows) == (0, 2)


def test_buckets_are_added_up_and_the_run_counts_who_waits() -> None:
    totals = Totals()
    totals.take([(None, [(1, Gauge(1, 5, 8, 6, peak=8))]), (None, [(1, Gauge(1, 5, 4, 4, peak=4))])], 100)
    totals.take([(0, [(2, Gauge(2, 10, 6, 4, peak=5, queue=2))]), (1, [(2, Gauge(1, 10, 4, 3, peak=3, queue=1))])], 1000)
    one, two = totals.metrics({1: "select", 2: "union"}, 2000, 2000)
    assert (one.tuples_in, one.tuples_out, one.peak, one.queue, one.idle) == (12, 10, 8, 0, 0.0)
    assert (two.steps, two.tuples_in, two.peak, two.queue) == (3, 10, 8, 3)
    assert two.idle == 0.5  # from 1000 on
    assert two.latency == pytest.approx(3 * 1000 / 10 / 1e6)
    totals.take([(0, [(2, Gauge(1, 0, 0, 2))])], 2000)  # bucket 1 still holds its tuple
    (two,) = totals.metrics({1: "select", 2: "union"}, 3000, 3000)[1:]
    assert (two.queue, two.peak, two.tuples_out, two.idle) == (1, 8, 9, pytest.approx(2 / 3))
    assert two.latency == pytest.approx((3 * 1000 + 1 * 1000) / 10 / 1e6)


@pytest.mark.parametrize("order", ["", IN_ORDER], ids=["out of order", "in order"])
def test_hosted_operators_count_what_those_of_one_process_do(order: str) -> None:
    """Ingest and stages of several buckets, whose state moves by chance, against one stage in this process."""
    rows = [(second % 7 - 1, second) for second in range(40)]
    query = "SELECT k, count(*) AS n FROM (SELECT k, ts FROM A WHERE k > 0 UNION ALL SELECT k, ts FROM B) AS u [RANGE 5 SECONDS] GROUP BY k"
    local, hosted = (Watched(order + STREAMS, query) for _ in range(2))
    for live in (local, hosted):
        for at in range(0, 40, 8):
            live.push("A", *rows[at : at + 8])
            live.push("B", *rows[at : at + 8])
    local.end()
    for source in hosted.sources.values():
        source.end()
    host = Host(hosted.launch, 3, random.Random(1))
    host.run()
    names = label_all(hosted.launch.graph)
    found = {o.number: o for o in host.program.totals.metrics(names, 1, 0)}
    for expected in local.metrics():
        one = found[expected.number]
        assert (one.name, one.tuples_in, one.tuples_out, one.queue) == (expected.name, expected.tuples_in, expected.tuples_out, 0)
        assert one.peak > 0 and one.steps > 0 and one.latency is not None


def test_a_note_has_what_was_done_since_the_last() -> None:
    live = Watched(STREAMS, UNION)
    live.push("A", (1, 0))
    live.settle()
    ran = dict(live.executor.take_gauges())
    assert ran and all(gauge.steps for gauge in ran.values())
    assert live.executor.take_gauges() == ()
