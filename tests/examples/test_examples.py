"""Every file under examples/ gives, on every runtime, what DuckDB computes over the same data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_local, run_spark
from millstream.runtime.status import Status
from tests.examples.kit import EXAMPLES, ORACLE, expected, pipeline_of, written
from tests.runtimes.bundle import bundle
from tests.runtimes.compare import assert_same


def check(name: str, out: Path, status: Status) -> None:
    for sink, rows in expected(name).items():
        if sink == "letters":
            assert status.letters == {row["kind"]: row["n"] for row in rows}
        else:
            assert rows, f"{name} {sink}: the example shows nothing"
            assert_same(written(out / sink, rows), rows, f"{name} {sink}")


def test_each_example_has_an_oracle() -> None:
    assert set(EXAMPLES) == {path.relative_to(ORACLE).with_suffix("").as_posix() for path in ORACLE.glob("*/*.sql")}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_says_what_it_does_and_where_it_is_from(name: str) -> None:
    what, origin, *_ = EXAMPLES[name].read_text().splitlines()
    assert what.startswith("-- ") and origin.startswith("-- ")
    assert "section" in origin or "appendix" in origin


def test_data_is_small() -> None:
    root = next(iter(EXAMPLES.values())).parents[1]
    assert sum(path.stat().st_size for path in root.glob("*/data/**/*") if path.is_file()) < 200_000


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("batch", [65536, 7])
def test_example_in_one_process(name: str, batch: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline = pipeline_of(name, out)
    pipeline.settings.set("execution.batch", batch)
    check(name, out, run_local(Launch.prepare(pipeline)))


def test_dead_letters_tell_what_was_wrong(tmp_path: Path) -> None:
    out = tmp_path / "out"
    status = run_local(Launch.prepare(pipeline_of("sensors/late", out)))
    assert status.letters_path == str(out / "letters")
    letters = [json.loads(line) for path in sorted((out / "letters").rglob("*.jsonl")) for line in path.read_text().splitlines()]
    assert len(letters) == sum(status.letters.values())
    assert all(letter["stream"] == "Troubled" and letter["reason"] and letter["line"] for letter in letters)
    assert all(letter["punctuation"] for letter in letters if letter["kind"] == "late")


@pytest.fixture(scope="module")
def on_spark(spark: object, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Status]:
    """All examples as one streaming query, since starting one costs more than running it."""
    place = tmp_path_factory.mktemp("spark")
    status = run_spark(Launch.prepare(bundle({name: pipeline_of(name, place / name) for name in EXAMPLES})))
    return place, status


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_on_spark(name: str, on_spark: tuple[Path, Status]) -> None:
    place, status = on_spark
    check(name, place / name, status)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_alone_on_spark_a_file_at_a_time(name: str, spark: object, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline = pipeline_of(name, out)
    pipeline.settings.set("source.max_files_per_batch", 1)
    check(name, out, run_spark(Launch.prepare(pipeline)))
