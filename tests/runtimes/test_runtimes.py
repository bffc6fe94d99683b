"""One suite on every runtime: the answers are DuckDB's, the gaps are refused with the words that the registry holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from millstream.core.letters import DeadLetter
from millstream.errors import MillstreamError
from millstream.testing.run import Result, run
from tests.runtimes.bundle import bundle
from tests.runtimes.case import RUNTIMES, Case
from tests.runtimes.cases import CASES, REFUSED, RUNNING, SETTLED
from tests.runtimes.compare import Row, assert_same
from tests.runtimes.oracle import ask
from tests.runtimes.support import PAGE, page


def names(cases: Mapping[str, Case]) -> list[Any]:
    return [pytest.param(n, marks=pytest.mark.xfail(reason=c.pending, strict=False)) if c.pending else n for n, c in cases.items()]


@cache
def expected(name: str) -> dict[str, Sequence[Row]]:
    case = CASES[name]
    if case.rows is not None:
        return {"Out": case.rows}
    tables = case.tables()
    return {sink: ask(query, tables) for sink, query in case.queries().items()}


def check_letters(case: Case, letters: Sequence[DeadLetter]) -> None:
    """Each with its stream and kind, in no order."""
    found = sorted((letter.stream, letter.kind, letter.content or "") for letter in letters)
    wanted = sorted(case.letters)
    assert [(stream, kind) for stream, kind, _ in found] == [(stream, kind) for stream, kind, _ in wanted], found
    for stream, kind, part in wanted:
        assert any((stream, kind) == (s, k) and part in content for s, k, content in found), f"no letter with {part} in {found}"


def check(case: Case, tables: Mapping[str, Sequence[Row]], letters: Sequence[DeadLetter]) -> None:
    for sink, rows in expected(case.name).items():
        assert_same(tables[sink], rows, f"{case.name} {sink}")
    check_letters(case, letters)


@pytest.mark.parametrize(("batch", "files"), [(65536, 1), (1, 3)], ids=["whole", "tuple-by-tuple"])
@pytest.mark.parametrize("name", names(RUNNING))
def test_local(name: str, batch: int, files: int) -> None:
    """In one process; how the streams are cut changes no answer and no letter."""
    case = RUNNING[name]
    result = run(case.pipeline(), case.inputs, runtime="local", batch=batch, files=dict.fromkeys(case.inputs, files))
    check(case, {sink: result.rows(sink) for sink in result.tables}, result.letters)


def on_spark(cases: Mapping[str, Case], files: int, buckets: int = 2, together: int | None = None) -> Result:
    """All cases as one streaming query; `together` files of a stream make one micro-batch."""
    inputs = {f"{name}.{stream}": rows for name, case in cases.items() for stream, rows in case.inputs.items()}
    whole = bundle({name: case.pipeline() for name, case in cases.items()})
    used = {relation.name for relation in whole.catalog.relations}
    inputs = {name: rows for name, rows in inputs.items() if name in used}
    if together is not None:
        whole.settings.set("source.max_files_per_batch", together)
    return run(whole, inputs, runtime="spark", buckets=buckets, files=dict.fromkeys(inputs, files))


@pytest.fixture(scope="module")
def spark_result(spark: object) -> Result:
    return on_spark(SETTLED, files=2)


@pytest.mark.parametrize("name", names(RUNNING))
def test_spark(name: str, spark_result: Result) -> None:
    check(RUNNING[name], *_of(name, spark_result))


def _of(name: str, result: Result) -> tuple[dict[str, list[dict[str, Any]]], list[DeadLetter]]:
    """One case's part of a bundle: what its sinks got, and its letters."""
    owner = f"{name}."
    tables = {sink.removeprefix(owner): result.rows(sink) for sink in result.tables if sink.startswith(owner)}
    letters = [replace(letter, stream=letter.stream.removeprefix(owner)) for letter in result.letters if letter.stream.startswith(owner)]
    return tables, letters


@pytest.mark.parametrize("name", [name for name, case in SETTLED.items() if case.letters])
def test_letters_are_the_same_on_every_runtime(name: str, spark_result: Result) -> None:
    """Reason, punctuation, line and content, not only their number."""
    case = SETTLED[name]
    local = run(case.pipeline(), case.inputs, runtime="local", files=dict.fromkeys(case.inputs, 2))
    found = [
        replace(
            letter,
            file=(letter.file or "").removeprefix(f"{name}."),
            reason=letter.reason.replace(f" of {name}.", " of "),
        )
        for letter in _of(name, spark_result)[1]
    ]
    assert sorted(map(repr, found)) == sorted(repr(replace(letter, file=letter.file or "")) for letter in local.letters)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", names(REFUSED))
def test_gap(name: str, runtime: str) -> None:
    """Refused with one line before anything runs, so that no runtime has to be started to see it."""
    case = REFUSED[name]
    with pytest.raises(MillstreamError) as problem:
        case.pipeline().graph()
    assert case.gaps[runtime] in str(problem.value)


def test_names_are_unique_without_case() -> None:
    assert len({name.lower() for name in CASES}) == len(CASES)


def test_the_support_table_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.runtimes.support`"


@pytest.mark.slow
@pytest.mark.parametrize(("buckets", "files", "together"), [(1, 1, None), (3, 4, 1), (2, 60, 20)])
def test_spark_cut_otherwise(spark: object, buckets: int, files: int, together: int | None) -> None:
    """Other numbers of buckets, files and micro-batches: the same answers and the same letters."""
    result = on_spark(SETTLED, files=files, buckets=buckets, together=together)
    for name, case in SETTLED.items():
        check(case, *_of(name, result))
