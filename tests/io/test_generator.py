"""The stream generator of paper 002, section 6.1: its notation, its statistics, and that any unit can be made again by itself."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.core.types import to_axis
from millstream.errors import MillstreamError, Place, SourceProblem
from millstream.io import GeneratorSource, Reading, Unit, generator, open_source
from millstream.io.contract import Limits
from millstream.io.generate import recipe
from millstream.io.generate.notation import ArrivalPattern
from tests.io.kit import Answer, schema

KV = schema("k BIGINT, v BIGINT, closed BOOLEAN, ts TIMESTAMP")
PLAIN = schema("k BIGINT, v BIGINT, ts TIMESTAMP")
START = 1_767_225_600_000_000


def made(pattern: str, kind: pa.Schema = KV, /, **options: Any) -> GeneratorSource:
    texts = {name: str(value) for name, value in options.items()}
    source = open_source("S", kind, {"connector": "generator", "pattern": pattern, **texts}, None)
    assert isinstance(source, GeneratorSource)
    return source


def units(source: GeneratorSource, limit: Callable[[], int | None] = lambda: None) -> Iterator[Unit]:
    """All of them, taken bit by bit; positions go through JSON, as they do on Spark."""
    position = source.initial()
    while not source.finished(position):
        end = json.loads(json.dumps(source.latest(position, limit())))
        assert end != position
        yield from source.units(position, end)
        position = end
    assert source.latest(position, None) == position


def answer(source: GeneratorSource, batch: int = 65_536) -> Answer:
    return Answer([reading for unit in units(source) for reading in source.read(unit, batch)], source.schema)


class Rows:
    """The columns of a finished stream as arrays."""

    def __init__(self, source: GeneratorSource) -> None:
        table = answer(source).table.combine_chunks()
        self.keys = table["k"].to_numpy()
        self.times = to_axis(table["ts"].combine_chunks())
        self.closing = table["closed"].to_numpy() if "closed" in table.column_names else np.zeros(len(self.keys), np.bool_)
        self.tuples = self.keys[~self.closing]
        self.closed = self.keys[self.closing]
        self.ends = np.flatnonzero(self.closing)
        self.sizes = np.diff(self.ends, prepend=-1) - 1


def forget() -> None:
    """As in another process."""
    for cache in (generator._chunk, recipe._made, recipe._outline, recipe._permuted):
        cache.cache_clear()


ORDER = st.sampled_from(["asc", "desc", "random"])
PATTERNS = st.one_of(
    st.builds("cluster-{}-{}".format, ORDER, st.sampled_from([1, 2, 7, 100, 5000])),
    st.builds(
        "{}-{}-{}-{}".format, st.sampled_from(["punct", "punctuation"]), ORDER, st.sampled_from([1, 3, 30, 900]), st.integers(0, 100)
    ),
    st.builds("unique-{}".format, ORDER),
    st.builds("none-{}".format, st.integers(1, 20_000)),
)


@given(PATTERNS, st.integers(0, 2**32), st.integers(0, 80_000), st.integers(1, 40_000), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_any_unit_by_itself_is_as_in_the_whole(pattern: str, seed: int, tuples: int, unit: int, cut: int) -> None:
    """Cut anyhow, read in any order, by a copy that knows nothing of the rest."""
    whole = answer(made(pattern, seed=seed, tuples=tuples))
    unit = max(unit, tuples // 40)
    source = made(pattern, seed=seed, tuples=tuples, unit=min(unit, recipe.CHUNK)).hosted(None, Limits(tuples=5000 * cut or None))
    chance = random.Random(seed)
    found = list(units(source, lambda: chance.choice([None, 1, 3])))
    assert [u.number for u in found] == list(range(len(found)))
    assert all(u.detail["end"] - u.detail["first"] <= unit for u in found)
    readings: dict[int, list[Reading]] = {}
    for u in chance.sample(found, len(found)):
        forget()
        readings[u.number] = list(pickle.loads(pickle.dumps(source)).read(pickle.loads(pickle.dumps(u)), chance.choice([1000, 65_536])))
    parts = Answer([reading for number in range(len(found)) for reading in readings[number]], KV)
    assert parts.table.equals(whole.table)
    assert np.array_equal(parts.lines, whole.lines) and np.array_equal(whole.lines, np.arange(1, whole.table.num_rows + 1))
    assert whole.table.num_rows - sum(whole.table["closed"].to_pylist()) == tuples


@given(PATTERNS, st.integers(0, 2**32), st.sampled_from([1, 10, 100]), st.booleans())
@settings(max_examples=20, deadline=None)
def test_no_tuple_comes_after_its_punctuation(pattern: str, seed: int, ahead: int, disorder: bool) -> None:
    options: dict[str, Any] = {"ahead": ahead} if pattern.startswith("punct") else {}
    rows = Rows(made(pattern, seed=seed, tuples=50_000, disorder="1 second" if disorder else "0 s", **options))
    closed = set()
    for key, closing in zip(rows.keys.tolist(), rows.closing.tolist(), strict=True):
        assert key not in closed, "a tuple or a punctuation of a value that was closed"
        if closing:
            closed.add(key)
    assert (len(closed) == 0) == pattern.startswith("none")
    assert (rows.times[rows.ends] == rows.times[rows.ends - 1]).all()
    behind = np.maximum.accumulate(rows.times) - rows.times
    assert behind.max() == 0 if not disorder else 0 < behind.max() <= 1_000_000


def test_another_process_makes_the_same() -> None:
    source = made("punct-random-30-40", tuples=100_000, seed=5)
    unit = list(units(source))[2]
    script = "import pickle, sys; s, u = pickle.load(sys.stdin.buffer); pickle.dump(list(s.read(u, 7000)), sys.stdout.buffer)"
    done = subprocess.run([sys.executable, "-c", script], input=pickle.dumps((source, unit)), stdout=subprocess.PIPE, check=True)
    assert [r.batch for r in pickle.loads(done.stdout)] == [r.batch for r in source.read(unit, 7000)]


def test_seeds() -> None:
    def keys(source: GeneratorSource) -> list[int]:
        return answer(source).table["k"].to_pylist()

    one, two = (made("punct-asc-30-40", tuples=1000, seed=seed) for seed in (1, 2))
    assert keys(one) == keys(made("punctuation-asc-30-40", tuples=1000, seed=1)) != keys(two)
    assert keys(one) == keys(made("punct-asc-30-40", tuples=2000, seed=1))[: len(keys(one))]  # a longer one begins in the same way
    options = {"connector": "generator", "pattern": "unique-asc", "tuples": "1000"}
    times = [[r.batch["ts"] for r in s.read(next(units(s)), 1000)] for s in (open_source(n, KV, options) for n in ("A", "B"))]  # type: ignore[arg-type]
    assert times[0] != times[1]  # without a seed each stream has its own


def near(found: Any, mean: float, spread: float) -> None:
    """The average is where it should be, within five standard errors."""
    assert abs(np.mean(found) - mean) < 5 * spread / np.sqrt(len(found)), (np.mean(found), mean)


@pytest.mark.parametrize("size", [1, 2, 30, 100])
def test_sizes_of_clusters(size: int) -> None:
    rows = Rows(made(f"cluster-asc-{size}", tuples=200_000, seed=size))
    assert rows.sizes.min() >= 1
    near(rows.sizes, size, np.sqrt(size))
    assert np.var(rows.sizes) == pytest.approx(size - 1, rel=0.15)
    members = rows.keys[: rows.ends[-1] + 1]
    assert (members == np.repeat(rows.closed, rows.sizes + 1)).all()


@pytest.mark.parametrize(("size", "match"), [(100, 40), (30, 40), (5, 20), (50, 0)])
def test_sizes_and_matches_of_segments(size: int, match: int) -> None:
    rows = Rows(made(f"punct-asc-{size}-{match}", tuples=200_000, seed=7, ahead=20))
    near(rows.sizes, size, np.sqrt(size))
    segment = np.repeat(np.arange(len(rows.ends)), rows.sizes + 1)
    keys, closing = rows.keys[: len(segment)], rows.closing[: len(segment)]
    distance = keys - rows.closed[segment]
    matching = np.bincount(segment, (distance == 0) & ~closing)
    near(100 * matching / rows.sizes, match, np.sqrt(match + 2500 / size) + 1)
    if match:
        share = 100 * matching / rows.sizes
        if size == 100:
            assert np.var(share) == pytest.approx(match, rel=0.15)  # Poisson: the variance is the mean
        assert (distance[rows.ends - 1] == 0).mean() == pytest.approx((matching > 0).mean())  # the last tuple matches, if any does
    others = distance[distance != 0]
    assert (np.bincount(others)[1:] > 0).all() and others.min() == 1 and others.max() == 20
    near(others, 10.5, np.sqrt(399 / 12))


def test_arrivals_are_a_poisson_process() -> None:
    """Also from chunk to chunk: gaps are exponential, and counts in equal spans are Poisson."""
    rows = Rows(made("cluster-asc-100", PLAIN, tuples=400_000, every="10 ms"))
    gaps = np.diff(rows.times)
    assert rows.times[0] == START and gaps.min() >= 0
    near(gaps, 10_000, 10_000)
    levels = np.linspace(0.05, 0.95, 19)
    assert np.quantile(gaps, levels) == pytest.approx(-10_000 * np.log1p(-levels), rel=0.03)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 0.01
    counts = np.bincount((rows.times - START) // 10_000_000)[:-1]
    near(counts, 1000, np.sqrt(1000))
    assert np.var(counts) == pytest.approx(1000, rel=0.4)
    edges = gaps[recipe.CHUNK - 1 :: recipe.CHUNK]
    assert edges.min() > 0 and edges.max() < 200_000


def test_orders() -> None:
    for size in (1, 30):
        asc, desc, shuffled = (Rows(made(f"cluster-{order}-{size}", tuples=90_000)).closed for order in ("asc", "desc", "random"))
        assert (asc == np.arange(len(asc))).all()
        assert (desc == desc[0] - np.arange(len(desc))).all() and desc[0] == 90_000 // size - 1 and abs(desc[-1]) < 150
        whole = len(shuffled) // 1000 * 1000
        blocks = shuffled[:whole].reshape(-1, 1000)
        assert (np.sort(blocks) == np.arange(whole).reshape(-1, 1000)).all()
        assert (blocks != np.sort(blocks)).mean() > 0.99 and (blocks[0] != blocks[1] - 1000).mean() > 0.9
    few = Rows(made("cluster-random-10", tuples=500)).closed
    assert len(few) > 30 and len(set(few.tolist()) & set(range(50))) > 30  # of a short stream all values are those of `asc`
    wide = Rows(made("unique-random", tuples=20_000, block=20_000, first=7)).closed
    assert np.array_equal(np.sort(wide), np.arange(7, 20_007)) and (np.abs(wide - 7 - np.arange(20_000)) > 1000).mean() > 0.5


def test_irrelevant_punctuations_match_no_tuple() -> None:
    plain, other = (Rows(made("punct-random-30-40", tuples=50_000, seed=3, irrelevant=on)) for on in ("false", "true"))
    assert len(np.intersect1d(other.tuples, other.closed)) == 0 and len(other.closed) == len(plain.closed) > 1000
    assert (plain.tuples == other.tuples).all() and (plain.times == other.times).all()


def test_without_punctuations_values_are_uniform() -> None:
    rows = Rows(made("none-15000", tuples=150_000))
    assert not rows.closing.any() and rows.keys.min() >= 0 and rows.keys.max() < 15_000
    near(rows.keys, 7499.5, 15_000 / np.sqrt(12))
    assert np.bincount(rows.keys // 1500) == pytest.approx([15_000] * 10, rel=0.05)


def test_a_stream_without_a_marker_has_tuples_only() -> None:
    shown, plain = made("cluster-asc-10", tuples=5000, seed=1), made("cluster-asc-10", PLAIN, tuples=5000, seed=1)
    rows = Rows(plain)
    assert (rows.keys == Rows(shown).tuples).all() and len(rows.keys) == 5000


def test_other_columns() -> None:
    kind = schema("name STRING, n TINYINT, id INT, x DOUBLE, f FLOAT, b BOOLEAN, over BOOLEAN, d DATE, p DECIMAL, raw BINARY, t TIMESTAMP")
    source = made("punct-asc-5-40", kind, tuples=1000, key="ID", marker="over", start="2026-03-01 23:59:58")
    rows = answer(source).table.to_pylist()
    counter = 0
    for before, row in zip([None, *rows], rows, strict=False):
        if row["over"]:
            assert before is not None and {**row, "id": 0, "over": False} == {**before, "id": 0}  # but for its key: the tuple before it
        else:
            assert row["n"] == counter % 128 and row["name"] == f"name-{row['id']}" and row["raw"] == f"raw-{row['id']}".encode()
            assert row["d"] == row["t"].date()
            counter += 1
    assert counter == 1000
    for column in ("x", "f"):
        assert all(0 <= row[column] < 1 for row in rows) and len({row[column] for row in rows}) > 900
    assert 400 < sum(row["b"] for row in rows if not row["over"]) < 600 and max(row["p"] for row in rows) > 9_000_000
    assert rows[0]["t"].isoformat() == "2026-03-01T23:59:58+00:00"
    small = made("unique-asc", schema("k TINYINT"), tuples=1000)
    with pytest.raises(SourceProblem, match="stream S: the values of the key column `k` have grown beyond TINYINT; declare it BIGINT"):
        answer(small)


def test_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tuple comes when its time has come, whatever unit or segment it is in; a stop in between changes nothing."""
    now = 5_000_000_000
    monkeypatch.setattr(generator, "_now", lambda: now)
    options = {"tuples": 100_000, "every": "1 ms", "seed": 4}
    whole = Rows(made("punct-asc-100-40", **options))
    source = made("punct-asc-100-40", **options, pace="clock")
    assert not made("unique-asc").bounded and made("unique-asc").clock and not source.bounded and made("unique-asc", tuples=1).bounded
    position, keys, number = source.initial(), [], 0
    began, edge = now, source.recipe.after(source.recipe.begin).time - START
    last = int(whole.times[source.recipe.rows(source.recipe.begin) - 2]) - START  # the last tuple before the edge
    for passed in [0, 1500, 41_500, 41_500, last - 1, last, edge, 50_000_000, 10**9]:
        now = began + passed
        source = pickle.loads(pickle.dumps(source))
        end = source.latest(position, None)
        for unit in source.units(position, end):
            assert unit.number == number
            number += 1
            keys += [key for reading in source.read(unit, 1000) for key in reading.batch["k"].to_pylist()]
        position = end
        assert len(keys) == (whole.times <= START + passed).sum()
        now -= 1000  # a clock that is set back takes nothing back
        assert source.latest(position, None) == position
        now += 1000
    assert source.bounded and source.finished(position) and np.array_equal(keys, whole.keys)
    endless = made("unique-asc", PLAIN, pace="data", unit=1000)
    assert endless.latest(endless.initial(), 50)["units"] == 50 and not endless.bounded


def test_notation() -> None:
    assert ArrivalPattern.parse("cluster-asc-100") == ArrivalPattern("asc", 100)
    assert (
        ArrivalPattern.parse("punct-random-30-40") == ArrivalPattern.parse("Punctuation-Random-30-40") == ArrivalPattern("random", 30, 40)
    )
    assert ArrivalPattern.parse("unique-desc") == ArrivalPattern.parse("cluster-desc-1") == ArrivalPattern("desc")
    assert ArrivalPattern.parse("none-15000") == ArrivalPattern(domain=15_000)


@pytest.mark.parametrize(
    ("pattern", "options", "said"),
    [
        (None, {}, "stream S: the option `pattern` is missing; add pattern = 'punct-asc-100-40' to WITH; numbered tuples are"),
        (
            "clusters-asc-3",
            {},
            r"stream S: `clusters-asc-3` is no arrival pattern; write cluster-\[order\]-\[clustersize\], punct-.* or none-",
        ),
        ("punct-asc-100", {}, r"the pattern `punct-asc-100` has 2 parts after `punct`; write punct-\[order\]-\[segmentsize\]-\[match"),
        ("unique", {}, r"has 0 parts after `unique`; write unique-\[order\]"),
        (
            "cluster-ascending-3",
            {},
            "stream S: no order `ascending` in the pattern `cluster-ascending-3`; there is `asc`, `desc`, `random`",
        ),
        ("cluster-asc-0", {}, "the cluster size of the pattern `cluster-asc-0` is `0`; write a whole number from 1 to 1000000"),
        ("punct-asc-1.5-40", {}, "the segment size of the pattern `punct-asc-1.5-40` is `1.5`"),
        ("punct-asc-10-140", {}, "the match percentage of the pattern `punct-asc-10-140` is `140`; write a whole number from 0 to 100"),
        ("none-", {}, "the domain of the pattern `none-` is ``"),
        ("unique-asc", {"every": "fast"}, "`every` is 'fast', not a length of time; write a number and a unit"),
        ("unique-asc", {"every": "0 s"}, "`every` is no time at all"),
        ("unique-asc", {"every": "3 secnds"}, "stream S: `every`: `secnds` is no unit of time; did you mean SECONDS"),
        ("unique-asc", {"tuples": "-1"}, "`tuples` is -1"),
        ("unique-asc", {"unit": "100000"}, "`unit` is 100000; write a number from 1 to 32768"),
        ("unique-asc", {"key": "closed"}, "the key column `closed` is BOOLEAN; choose an integer column"),
        ("unique-asc", {"marker": "v"}, "the marker column `v` is BIGINT; choose a BOOLEAN column"),
        ("unique-asc", {"key": "kk"}, "no column `kk` in stream S; did you mean `k`"),
        ("unique-asc", {"ahead": "3"}, "no option `ahead` in stream S"),
        ("unique-asc", {"pace": "slow"}, "no pace `slow` in stream S"),
        ("none-5", {"irrelevant": "true"}, "no option `irrelevant` in stream S"),
    ],
)
def test_mistakes(pattern: str | None, options: dict[str, str], said: str) -> None:
    with pytest.raises(MillstreamError, match=said) as caught:
        open_source("S", KV, {"connector": "generator", **({"pattern": pattern} if pattern else {}), **options}, Place(4, 2, 3))
    assert str(caught.value).startswith("statement 3, line 4, column 2: ") and "\n" not in str(caught.value)


def test_a_key_is_needed() -> None:
    with pytest.raises(MillstreamError, match="stream S has no integer column for the key; declare one, such as `k BIGINT`"):
        made("unique-asc", schema("s STRING, ts TIMESTAMP"))
