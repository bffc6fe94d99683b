"""Sources without an outside: generated tuples and lists."""

import pickle
import threading
import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from millstream.errors import MillstreamError, NameProblem, Place, SourceProblem
from millstream.io import ListSource, open_source
from tests.io.kit import Answer, read_all, schema

A = schema("a BIGINT")
START = datetime(2020, 1, 1, tzinfo=UTC)


def test_a_bounded_rate_is_a_function_of_the_row_number() -> None:
    kind = schema("n BIGINT, t TIMESTAMP")
    source = open_source("S", kind, {"connector": "rate", "rows": "25", "unit_rows": "10", "rows_per_second": "4"}, None)
    assert source.bounded
    answer = Answer(read_all(source, 4), kind)
    assert answer.rows == [(i, START + timedelta(milliseconds=250 * i)) for i in range(25)] and answer.lines == list(range(1, 26))
    position = source.latest(source.initial(), 2)
    assert position == {"rows": 20} and not source.finished(position)
    last = source.latest(position, 2)
    assert last == {"rows": 25} and source.finished(last)
    units = source.units(position, last)
    assert [unit.number for unit in units] == [2]
    other = pickle.loads(pickle.dumps(source))
    assert [r.batch for r in other.read(units[0], 100)] == [r.batch for r in source.read(units[0], 100)]


def test_an_unbounded_rate_follows_the_clock() -> None:
    source = open_source("S", A, {"connector": "rate", "rows_per_second": "1000", "unit_rows": "10"}, None)
    before = source.latest(source.initial(), None)["rows"]
    time.sleep(0.1)
    after = source.latest(source.initial(), None)["rows"]
    assert not source.bounded and 0 <= before < 1000 and before + 50 <= after < before + 5000 and after % 10 == 0
    assert source.latest({"rows": after + 1000}, None) == {"rows": after + 1000}  # never back
    fast = open_source("S", A, {"connector": "rate"}, None)
    assert fast.latest(fast.initial(), None) == {"rows": 10_000} and fast.latest(fast.initial(), 3) == {"rows": 30_000}


def test_start_and_odd_rates() -> None:
    kind = schema("t TIMESTAMP, n SMALLINT")
    source = open_source("S", kind, {"connector": "rate", "rows": "4", "rows_per_second": "3", "start": "2021-05-01 00:00:00"}, None)
    rows = Answer(read_all(source), kind).rows
    assert rows[3] == (datetime(2021, 5, 1, 0, 0, 1, tzinfo=UTC), 3) and rows[1][0].microsecond == 333333


def test_wrong_rates() -> None:
    for options, message in [
        ({"rows_per_second": "0"}, "not a number above 0"),
        ({"rows": "-1"}, "`rows` is -1"),
        ({"start": "soon"}, "not a timestamp"),
        ({"column.b": "1"}, "no column `b`"),
        ({"row": "1"}, "did you mean `rows`"),
    ]:
        with pytest.raises(MillstreamError, match=message):
            open_source("S", A, {"connector": "rate", **options}, None)
    with pytest.raises(NameProblem, match="nothing says what column `s` holds"):
        open_source("S", schema("a BIGINT, s STRING"), {"connector": "rate"}, None)


def test_columns_by_expression() -> None:
    kind = schema("n BIGINT, k INT, t TIMESTAMP, big BOOLEAN")
    options = {"connector": "rate", "rows": "5", "column.K": "value % 3", "column.big": "value > 2"}
    source = pickle.loads(pickle.dumps(open_source("S", kind, options, None)))
    rows = Answer(read_all(source, 2), kind).rows
    assert [(n, k, big) for n, k, _, big in rows] == [(i, i % 3, i > 2) for i in range(5)]


def test_wrong_expressions() -> None:
    here = Place(4, 2, 3)
    with pytest.raises(MillstreamError, match=r"statement 3, line 4, column 2: stream S: .*`valu`.*did you mean `value`"):
        open_source("S", A, {"connector": "rate", "column.a": "valu % 3"}, here)
    source = open_source("S", schema("a TINYINT"), {"connector": "rate", "rows": "1000", "column.a": "value"}, here)
    with pytest.raises(SourceProblem, match="stream S: column `a`: `value` does not fit TINYINT"):
        read_all(source)


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], schema=A)


def test_a_list_is_read_batch_by_batch() -> None:
    source = ListSource("S", A, [batch(1, 2, 3), batch(), batch(4)])
    answer = Answer(read_all(pickle.loads(pickle.dumps(source)), 2), A)
    assert answer.rows == [(1,), (2,), (3,), (4,)] and answer.sizes == [2, 1, 1] and source.bounded
    assert source.latest({"units": 0}, 2) == {"units": 2} and source.finished({"units": 3}) and not source.finished({"units": 2})
    with pytest.raises(SourceProblem, match="has ended"):
        source.push(batch(5))


def test_a_list_can_be_fed_while_it_is_read() -> None:
    source = ListSource("S", A, ended=False)

    def feed() -> None:
        for i in range(100):
            source.push(batch(i))
        source.end()

    thread = threading.Thread(target=feed)
    thread.start()
    position, rows = source.initial(), []
    while not source.finished(position):
        end = source.latest(position, 7)
        rows += Answer([r for unit in source.units(position, end) for r in source.read(unit, 10)], A).rows
        position = end
    thread.join()
    assert rows == [(i,) for i in range(100)]
    with pytest.raises(SourceProblem, match=r"the batch has \(b BIGINT\), declared is \(a BIGINT\)"):
        ListSource("S", A, ended=False).push(pa.RecordBatch.from_arrays([pa.array([1])], names=["b"]))
